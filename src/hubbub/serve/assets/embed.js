// Puts a collector's question into a page of another site:
//
//   <script type="module" src="https://collector.example/embed.js" data-study></script>
//
// The question is in a frame with the collector's own origin, so that neither the scripts of the page around it nor its
// styles can reach the answer. The frame has a fixed height (data-height, in pixels): one that followed the content
// would tell what was chosen. data-token hands a person's token to the frame, behind the # of its address, which is
// never sent; data-title names the frame.

const HEIGHT = 760;

for (const script of document.querySelectorAll("script[data-study]")) {
  if (script.src !== import.meta.url || script.dataset.study === "shown") continue;
  script.dataset.study = "shown";
  const frame = document.createElement("iframe");
  const address = new URL("embedded", import.meta.url);
  if (script.dataset.token) address.hash = new URLSearchParams({ token: script.dataset.token });
  frame.src = address.href;
  frame.title = script.dataset.title ?? "A question, answered with noise";
  frame.setAttribute("sandbox", "allow-scripts allow-same-origin");
  frame.referrerPolicy = "no-referrer";
  frame.allow = "";
  Object.assign(frame.style, { width: "100%", height: `${Number(script.dataset.height) || HEIGHT}px`, border: "0" });
  script.after(frame);
}
