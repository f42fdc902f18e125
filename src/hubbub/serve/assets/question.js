// The question page: choose, draw once, look at it, send it.
//
// The answer stays in the control until the report is drawn, and is forgotten then. What is sent was drawn before it
// was seen, and cannot be drawn again: whoever could choose among draws would tell the answer by the choice. Examples
// are drawn apart, and never sent.

import { Client, ClientError } from "./hubbub-client.js";
import { answerControl } from "./answer-controls.js";
import { AnswerMemory, browserStorage, personalStorage } from "./answer-memory.js";
import { element, isolated, show } from "./page-elements.js";
import { deliver } from "./report-delivery.js";
import { outputWords } from "./value-words.js";

const EXAMPLES = 8;
const page = document.getElementById("page");
const part = (id) => document.getElementById(id);

/** Show one step of the page, and tell it to those who do not see it. */
function enter(step, focus = true) {
  for (const each of ["starting", "token", "choose", "drawn", "done", "problem"]) show(each, each === step);
  if (focus) part(step).querySelector("h2")?.focus();
}

/** The study did not arrive: of the connection or the collector, not of this page. */
class NoStudyError extends Error {}

/** Show why the page cannot be used: in words for who came to answer, in parts for who can mend it. */
function fail(error) {
  const isOurs = error instanceof ClientError;
  const what = isOurs ? sentence(error.what) : "This page's script failed.";
  part("problem-what").textContent = error instanceof NoStudyError ? "The study could not be loaded." : what;
  show("problem-parts", isOurs);
  if (isOurs) part("problem-parts-text").textContent = error.message;
  enter("problem");
}

/** Return a handler that shows what goes wrong in it; nothing is sent then. */
const guarded = (handle) => () => {
  try {
    handle();
  } catch (error) {
    fail(error);
  }
};

async function fetchStudy() {
  try {
    const response = await fetch(page.dataset.study, { credentials: "omit", referrerPolicy: "no-referrer" });
    if (response.ok) return await response.text();
  } catch {
    // no connection, or it broke off
  }
  throw new NoStudyError();
}

/** Return the token of the link: behind the #, which browsers never send. */
const linkToken = () => new URLSearchParams(location.hash.slice(1)).get("token") ?? "";

async function start() {
  const text = await fetchStudy();
  const pins = { fingerprint: page.dataset.fingerprint, digest: page.dataset.digest };
  const client = await Client.from(text, pins);
  const examples = await Client.from(text, pins); // remembers nothing: examples leave no permanent response
  const storage = browserStorage();
  const mechanism = page.dataset.mechanism;
  const law = JSON.parse(text).mechanisms[mechanism];
  const isLongitudinal = "first" in law; // what one report of a mechanism with memory spends
  const study = { client, examples, storage, mechanism, law, isLongitudinal, domain: client.domain };
  if (page.dataset.access === "tokens" && !linkToken()) askToken(study);
  else await ask(study, page.dataset.access === "tokens" ? linkToken() : undefined);
}

function askToken(study) {
  part("token-next").addEventListener("click", () => {
    const token = part("token-field").value.trim();
    if (token) ask(study, token).catch(fail);
    else part("token-field").focus();
  });
  enter("token", false);
}

async function ask(study, user) {
  const storage = await personalStorage(study.storage, user);
  const memory = new AnswerMemory(storage, study.client.fingerprint);
  if (study.isLongitudinal) part("kept").textContent = study.client.remember(storage ?? {});
  show("forgetful", !memory.isKept);
  const { drawn, sent } = memory.read();
  const session = { ...study, memory, user };
  part("draw").onclick = guarded(() => draw(session));
  part("example").onclick = guarded(() => drawExamples(session));
  part("send").onclick = () => send(session).catch(fail);
  part("again").onclick = () => choose(session, true);
  part("other").onclick = () => {
    memory.forget();
    choose(session, true);
  };
  if (drawn) showDrawn(session, drawn, false);
  else if (sent) showDone(session, null);
  else choose(session, false);
}

// --- choose ----------------------------------------------------------------------------------------------------------

let control = null;

function choose(session, focus) {
  control?.clear();
  control = answerControl(session.domain, part("question").textContent, () => {
    part("mistake").textContent = "";
    part("examples").replaceChildren();
    show("examples-title", false);
  });
  part("control").replaceChildren(control.element);
  part("mistake").textContent = "";
  part("examples").replaceChildren();
  show("examples-title", false);
  enter("choose", focus);
}

/** Return what `use` makes of the chosen value; tell what is wrong with it otherwise. */
function withValue(use) {
  const missing = control.problem();
  try {
    if (!missing) return use(control.value());
    part("mistake").textContent = missing;
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    part("mistake").textContent = `${error.what}: ${error.remedy}.`;
  }
  part("mistake").focus();
  return null;
}

function drawExamples({ examples, mechanism, domain, law }) {
  const drawn = withValue((value) => Array.from({ length: EXAMPLES }, () => examples.privatize(value, mechanism)));
  if (!drawn) return;
  const words = drawn.map((output) => outputWords(domain, law, output).join(" · "));
  part("examples").replaceChildren(...words.map((each) => element("li", {}, isolated(each))));
  show("examples-title");
}

// --- draw ------------------------------------------------------------------------------------------------------------

function draw(session) {
  const { memory, client, mechanism } = session;
  const waiting = memory.read().drawn; // perhaps drawn in another tab meanwhile: there is one draw for all tabs
  const report = waiting ?? withValue((value) => client.report(value, { mechanism }));
  if (!report) return;
  memory.keepDrawn(report);
  control?.clear(); // from here on the answer is nowhere in this page
  control = null;
  part("control").replaceChildren();
  part("examples").replaceChildren();
  showDrawn(session, report, true);
}

function requestBody({ client, user }, { mechanism, output, key }) {
  const report = { mechanism, output, key, ...(user === undefined ? {} : { user }) };
  return JSON.stringify({ fingerprint: client.fingerprint, reports: [report] });
}

const wordsOf = ({ domain, law }, { output }) =>
  outputWords(domain, law, output).map((each) => element("li", {}, isolated(each)));

function showDrawn(session, report, isNew) {
  session.report = report;
  part("sent-words").replaceChildren(...wordsOf(session, report));
  part("bytes").textContent = requestBody(session, report);
  part("byte-count").textContent = String(new TextEncoder().encode(requestBody(session, report)).length);
  part("address").textContent = new URL(page.dataset.reports, location.href).href;
  part("send").disabled = false;
  part("sending").textContent = "";
  show("earlier", !isNew);
  enter("drawn", isNew);
}

// --- send ------------------------------------------------------------------------------------------------------------

async function send(session) {
  const { memory, report } = session;
  const body = part("bytes").textContent; // what is shown is what is sent
  part("send").disabled = true;
  show("nothing-sent", false); // from here on nobody can promise that
  const { stored, answer } = await deliver(page.dataset.reports, body, (number, most) => {
    const again = `No confirmation yet. Sending the same again (${number} of ${most})…`;
    part("sending").textContent = number === 1 ? "Sending…" : again;
  });
  if (stored) {
    memory.keepSent();
    showDone(session, { body, answer, report });
    return;
  }
  const [error] = answer?.errors ?? [];
  part("sending").textContent = error
    ? `The collector did not take it: ${error.what}. What it expects: ${error.expected}. ${sentence(error.remedy)}`
    : "The collector could not be reached. Nothing is lost: try again later. It counts once, however often it is sent.";
  part("send").disabled = false;
  part("send").focus();
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

function showDone(session, sending) {
  show("receipt", sending !== null);
  show("given", sending === null);
  if (sending) {
    part("sent-again").replaceChildren(...wordsOf(session, sending.report));
    part("sent-bytes").textContent = sending.body;
    part("confirmed").textContent = sending.answer.repeated
      ? "The collector had stored your report already, and counts it once."
      : "The collector has stored your report, once.";
  }
  show("again", session.isLongitudinal);
  // Permanent responses belong to one person: somebody else would send the same noise.
  show("other", page.dataset.access !== "tokens" && !session.isLongitudinal);
  enter("done", sending !== null);
}

start().catch(fail);
