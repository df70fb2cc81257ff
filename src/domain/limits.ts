// The bounds that more than one folder of src uses: sizes in bytes, times in milliseconds, counts. The bounds of HTTP are
// in http/http-limits.ts, those of a single folder at the top of a file, those that an operator may change in config/settings.ts.

export const LIMITS = {
  /** The largest request body. Over it: 413 PAYLOAD_TOO_LARGE. */
  requestBodyBytes: 4 * 1024 * 1024,
  /** The deepest nesting of a registered value or a JSON body, which later code may visit by recursion. */
  nestingDepth: 128,
  /**
   * Values in one body, keys included, besides the arguments of a call. Over it: VALIDATION_ERROR. Some 100 bytes of memory each
   * while it is checked.
   */
  bodyValues: 100_000,
  /** Characters of a caller's key that are repeated in a `loc`. */
  locCharacters: 128,
  /** The largest sum of request headers, unless a setting changes it. Over it Node answers 431. */
  requestHeaderBytes: 16 * 1024,
  /**
   * Open connections of one address, unless a setting changes it. Over it, and over the next two, connections without a
   * request in progress are closed. Source: ADR 91.
   */
  connectionsPerAddress: 2_000,
  /** Open connections of all addresses, unless the memory is small. */
  connections: 65_536,
  /** Bytes of unfinished requests of unknown callers. */
  unfinishedBytes: 64 * 1024 * 1024,
  /** The largest message of a backend (one line, one SSE event, one JSON answer). Over it: BACKEND_UNAVAILABLE. */
  backendMessageBytes: 64 * 1024 * 1024,
  /** The largest message that is parsed; results are not. */
  parsedMessageBytes: 8 * 1024 * 1024,
  /**
   * Values, keys included, of one item of a list, and of any other message or result that is parsed: it takes a single turn.
   * Source: ADR 322.
   */
  parsedAtOnce: 100_000,
  /** The largest result that is parsed when the gateway needs something of it. */
  inspectedResultBytes: 16 * 1024,
  /** Exchanges one instance carries at the same time. */
  inFlightPerInstance: 256,
  /** Additional capacity for owners that use less than an equal part while others use more. Source: ADR 41. */
  inFlightHeadroom: 32,
  /** Pages of one list, in case the cursor of a backend never ends. */
  listPages: 1_000,
  /** Sessions of legacy MCP clients, all templates together. Over it: SESSION_LIMIT. */
  sessions: 10_000,
  /** The most sessions that a setting may allow. */
  sessionsHardBound: 1_000_000,
  /** A session ends after this time without a message and without an open stream. */
  sessionIdleMs: 30 * 60_000,
  /** The longest such time that a setting may give. */
  sessionIdleHardBoundMs: 7 * 24 * 60 * 60_000,
  /**
   * The time after which a call yields: when the client of its session had no stream and sent no message for so long,
   * the call is cancelled as soon as another call waits for capacity.
   */
  callsYieldAfterMs: 60_000,
  /** Dedicated processes of one instance. */
  dedicatedProcesses: 64,
  /** The most dedicated processes of one instance that a setting may allow. */
  dedicatedProcessesHardBound: 10_000,
  /**
   * Processes of one instance that clients with equal `extensions` and `experimental` share, within dedicatedProcesses.
   * Source: ADR 26.
   */
  extensionProcesses: 8,
  /** Calls that wait for their client: of modern clients in all, of sessions at one instance. Over it: QUEUE_FULL. */
  callsAwaitingClient: 1_000,
  /**
   * The part of a shared total that one owner may hold: sessions, processes and conversations of an instance, calls that wait
   * for their client. Over it: SESSION_LIMIT, QUEUE_FULL.
   */
  ownerShare: 0.25,
  /** Messages of a backend that wait for its client to open a stream, per session. */
  undeliveredMessages: 64,
  /** JSON-RPC messages of one batch. */
  batchMessages: 100,
  /** Subscriptions (URIs) of one client. */
  subscriptionsPerClient: 1_000,
  /** Requests under way that restore the log level and the subscriptions of one session in a new conversation. */
  concurrentRestores: 16,
  /** Grace for calls in flight when the gateway stops. */
  graceMs: 25_000,
  /** The longest such grace that a setting may give. */
  graceHardBoundMs: 600_000,
  /** Grace for calls in flight when one instance is drained or deregistered. */
  drainMs: 30_000,
  /** The longest wait for a TCP and TLS connection to a backend. After it: BACKEND_UNAVAILABLE, not delivered. */
  connectMs: 5_000,
  /** The longest wait for an answer that no caller needs: to a cancellation or a session delete, or the end of a stream. */
  backgroundMs: 2_000,
  /** The longest time after the start in which `/readyz` waits for the first openings of the loaded instances. */
  firstOpeningsMs: 5_000,
  /** The longest handshake of a starting instance. */
  handshakeMs: 30_000,
  /** The first wait before a dead instance is started again; doubled each time, with jitter. */
  restartFirstMs: 500,
  /** The longest wait before a dead instance is started again. */
  restartLongestMs: 30_000,
  /**
   * The longest wait before an HTTP server is asked again that refuses with 401, 403, 404 or 410, and the longest
   * wait that a server may ask for in `Retry-After` or in an event stream. Source: ADR 109.
   */
  refusedLongestMs: 600_000,
  /**
   * Hard maximum of a call, whatever progress it reports, unless a setting changes it or the timeout of the call is
   * longer. Source: ADR 40.
   */
  callDefaultBoundMs: 600_000,
  /** The longest hard maximum that a setting or a timeout may give a call. */
  callHardBoundMs: 24 * 60 * 60_000,
  /** Templates of one registry. Over it: REGISTRY_FULL. */
  templates: 2_000,
  /** The longest text in an entry of the audit log, in UTF-16 units; a longer one is cut. */
  auditTextUnits: 512,
  /** The longest beginning of arguments in the audit log, in UTF-16 units. */
  auditArgumentUnits: 4_096,
  /** The fewest characters of a password. */
  passwordCharacters: 8,
  /** The most bytes of a password: bcrypt ignores further ones. */
  passwordBytes: 72,
  /** The shortest secret that signs or encrypts. Source: RFC 7518, 3.2: the key of HS256 has at least the size of its hash. */
  secretBytes: 32,
  /**
   * Fields of a form, of a login as JSON, and of the query of a page of the sign-in: callers without credentials
   * may send them, and libraries look for each among all.
   */
  formFields: 100,
  /** Refusals of one caller that the audit log records in a minute, and its own changes; unknown callers count as one. */
  recordedRefusalsPerMinute: 30,
} as const;
