/** What `hubbub export-client STUDY` writes: its text, or the parsed object. */
export type StudyDocument = string | Record<string, unknown>;

/**
 * A value of the study's domain: a label; for bins the number itself; for a map `[latitude, longitude]`. Texts are read
 * like the rows of a file. For several attributes a list in their order, or an object. Whole numbers from 2^53 on are
 * given as texts or as BigInt, because a number may have been rounded.
 */
export type Value = string | number | bigint | readonly Value[] | { readonly [attribute: string]: Value };

/** Where permanent responses are kept: localStorage, sessionStorage, a Map, or anything with these two methods. */
export type ResponseStorage =
  | { getItem(key: string): string | null; setItem(key: string, text: string): void }
  | Map<string, string>;

export interface ClientOptions {
  /** The study's fingerprint; another study is refused. */
  fingerprint?: string;
  /** The digest that `hubbub export-client` printed; any other file is refused. */
  digest?: string;
  /** Random bytes for tests; by default those of crypto.getRandomValues. */
  randomBytes?: (count: number) => Uint8Array;
}

export interface MechanismPromise {
  readonly name: string;
  readonly kind: string;
  /** Of one report (of mechanisms with memory: of all reports about one value); null if there is no bound. */
  readonly epsilon: number | null;
  /** The unit of distance that epsilon is for; missing if it holds between any two values. */
  readonly unit?: string;
  /** The epsilon of one report of a mechanism with memory. */
  readonly first?: number;
  /** What epsilon means, in a sentence for people. */
  readonly promise: string;
}

export interface ReportOptions {
  /** The mechanism's name; it may be left out if the study has one. */
  mechanism?: string;
  /** The person's token, where the collector asks for one. */
  user?: string;
}

export interface Report {
  mechanism: string;
  /** As reports write it; for several attributes a JSON text. */
  output: string;
  /** 128 random bits: a report that is sent twice counts once. */
  key: string;
  user?: string;
}

/** A study, value or storage that cannot be used. No part of it ever contains the value. */
export class ClientError extends Error {
  constructor(what: string, parts: { where: string; got: string; expected: string; remedy: string });
  readonly what: string;
  readonly where: string;
  readonly got: string;
  readonly expected: string;
  readonly remedy: string;
}

/** Privatizes values by the mechanisms of a study. */
export class Client {
  private constructor();

  /** Check a study completely and return its client; a damaged or another one is refused. */
  static from(document: StudyDocument, options?: ClientOptions): Promise<Client>;

  readonly fingerprint: string;
  readonly name: string;
  /** The values, as the document describes them. */
  readonly domain: Readonly<Record<string, unknown>>;
  /** What the page asks, if the study says so. */
  readonly question: Readonly<Record<string, unknown>> | null;
  readonly mechanisms: readonly MechanismPromise[];

  /** Return one output for a value. Every call is a new report that spends epsilon again. */
  privatize(value: Value, mechanism?: string): string;

  /** Return one report, ready to be sent. */
  report(value: Value, options?: ReportOptions): Report;

  /**
   * Return the permanent response of a mechanism with memory: as private as the value, to be kept and never sent.
   * `earlier` are the responses that are kept for other values of the same person, the first one first.
   */
  permanent(value: Value, mechanism?: string, earlier?: string | readonly string[]): string;

  /** Return an output from a permanent response, to be sent. */
  instantaneous(permanent: string, mechanism?: string): string;

  /** Keep permanent responses in a storage and make all further reports from them; says in words what is kept. */
  remember(storage: ResponseStorage): string;
}
