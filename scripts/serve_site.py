"""Show the site in a browser until interrupted.

Run: python scripts/serve_site.py [site]
"""

from __future__ import annotations

import sys
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


def main() -> None:
    """Serve the folder on this machine alone."""
    handler = partial(SimpleHTTPRequestHandler, directory=sys.argv[1] if len(sys.argv) > 1 else "site")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        print(f"{address}  (ctrl-c ends it)", flush=True)
        webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
