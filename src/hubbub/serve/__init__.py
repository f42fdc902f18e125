"""The collector: reports come in over HTTP, are checked by the study, and are acknowledged once they are on disk.

A request goes through `bounded_http` (limits of size and time), `web_app` (routes, origins, rates), `report_requests`
(JSON to columns), `group_commit` (one thread that checks and writes all waiting requests in one transaction), and is
answered when that transaction is durable.
"""
