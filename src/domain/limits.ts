// The bounds that more than one folder uses: sizes in bytes, times in milliseconds, counts. The bounds of HTTP are
// in http/limits.ts, those of a single file at its top, those that an operator may change in config/settings.ts.

export const LIMITS = {
  /** Largest request body. Over it: 413 PAYLOAD_TOO_LARGE. */
  requestBodyBytes: 4 * 1024 * 1024,
  /** Deepest nesting of a registered value or a JSON body, which later code may visit by recursion. */
  nestingDepth: 128,
  /**
   * Values in one body, keys included, besides the arguments of a call. Over it: VALIDATION_ERROR. Some 100 bytes of memory each
   * while it is checked.
   */
  bodyValues: 100_000,
  /** Issues reported in one VALIDATION_ERROR. */
  validationIssues: 64,
  /** Characters of a caller's key that are repeated in a `loc`. */
  locCharacters: 128,
  /** Largest sum of request headers, unless a setting changes it. Over it Node answers 431. */
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
  /** Most request headers. Over it: 431. */
  requestHeaders: 256,
  /** Requests of one connection that wait for the answer before them. Over it the connection is closed. */
  pipelinedRequests: 1_000,
  /**
   * What all requests that wait like that take. Over it a connection that adds some, and has over
   * requestHeaderBytes, is closed.
   */
  pipelinedBytes: 32 * 1024 * 1024,
  /** What such a request takes besides its target and headers. Source: ADR 333. */
  pipelinedRequestBytes: 4 * 1024,
  /** Largest message of a backend (one line, one SSE event, one JSON answer). Over it: BACKEND_UNAVAILABLE. */
  backendMessageBytes: 64 * 1024 * 1024,
  /** Largest message that is parsed; results are not. */
  parsedMessageBytes: 8 * 1024 * 1024,
  /** Largest body of an HTTP refusal without JSON; the rest is not read. */
  refusalBytes: 256 * 1024,
  /** Beginning of the text of a refusal that callers get, in UTF-16 units. */
  refusalCharacters: 300,
  /** Values, keys included, of all pages of one list. A list with 10,000 tools has about 300,000. */
  parsedValues: 1_000_000,
  /**
   * The same of one item of a list, and of any other message or result that is parsed: it takes a single turn.
   * Source: ADR 349.
   */
  parsedAtOnce: 100_000,
  /** Largest result that is parsed when the gateway needs something of it. */
  inspectedResultBytes: 16 * 1024,
  /** Exchanges one instance carries at the same time. */
  inFlightPerInstance: 256,
  /** Additional capacity for owners that use less than an equal part while others use more. Source: ADR 41. */
  inFlightHeadroom: 32,
  /** Exchanges that wait per instance when all are full. Over it: 429 QUEUE_FULL. */
  queuedPerInstance: 256,
  /** Longest wait in that queue. After it: 429 QUEUE_FULL. */
  queueWaitMs: 5_000,
  /** Pages of one list, in case the cursor of a backend never ends. */
  listPages: 1_000,
  /** Items of one list. */
  listItems: 100_000,
  /**
   * Longest wait of a call while the tools are listed again, because its tool is not in the list. After it: 404
   * TOOL_NOT_FOUND.
   */
  toolLookupMs: 5_000,
  /** Longest wait for one page of an instance's tools. */
  toolListMs: 30_000,
  /** Shortest age of a list of tools that is requested again because a called tool is not in it. */
  toolListAgeMs: 1_000,
  /** Listings in a row when the tools change while they are listed. */
  toolListRounds: 3,
  /** Longest silence after the handshake of the modern era before the legacy one is tried, once. */
  silentEraMs: 5_000,
  /** Sessions of legacy MCP clients, all templates together. Over it: SESSION_LIMIT. */
  sessions: 10_000,
  /** A session ends after this time without a message and without an open stream. */
  sessionIdleMs: 30 * 60_000,
  /** It is idle, without an actor, after this time without use. */
  sessionUnusedMs: 60_000,
  /**
   * A session without a stream and without a message for this time ends as soon as another client needs its place or its
   * dedicated process. Source: ADR 86.
   */
  sessionReplaceableMs: 5 * 60_000,
  /**
   * When the client of a session had no stream and sent no message for this time, its call is cancelled as soon as another call
   * waits for capacity.
   */
  callsYieldAfterMs: 60_000,
  /** Processes of one instance that serve single clients. */
  dedicatedProcesses: 64,
  /** Started processes that wait for the next client. */
  warmProcesses: 1,
  /**
   * Processes of one instance that clients with equal `extensions` and `experimental` share, within dedicatedProcesses.
   * Source: ADR 104.
   */
  extensionProcesses: 8,
  /** Time after which such a process ends when no session and no call uses it. */
  extensionIdleMs: 10 * 60_000,
  /** Idle time after which a conversation for clients without a session is closed. */
  statelessIdleMs: 60_000,
  /** Calls that wait for their client: of modern clients in all, of sessions at one instance. Over it: QUEUE_FULL. */
  callsAwaitingClient: 1_000,
  /** How long the end of a modern client's call is kept for it. */
  unreadEndMs: 10 * 60_000,
  /**
   * Part of a shared total that one owner may hold: sessions, processes and conversations of an instance, calls that wait
   * for their client. Over it: SESSION_LIMIT, QUEUE_FULL.
   */
  ownerShare: 0.25,
  /** What an owner may always hold: one client's need. */
  ownerShareLeast: 8,
  /** Messages of a backend that wait for its client to open a stream, per session. */
  undeliveredMessages: 64,
  /** The size of the params of these messages, as JSON. */
  undeliveredBytes: 1024 * 1024,
  /** Bytes of a stream that a client of the MCP endpoint may leave unread before messages are dropped. */
  unreadBytes: 1024 * 1024,
  /** JSON-RPC messages of one batch. */
  batchMessages: 100,
  /** Subscriptions (URIs) of one client. */
  subscriptionsPerClient: 1_000,
  /** Grace for calls in flight when the gateway stops. */
  graceMs: 25_000,
  /** Grace for calls in flight when one instance is drained or deregistered. */
  drainMs: 30_000,
  /** Wait for the end of a child after its input was closed; SIGTERM follows. */
  stdinEndMs: 2_000,
  /** Wait after SIGTERM; SIGKILL follows. */
  terminateMs: 3_000,
  /** Lines kept of a child's standard error. */
  stderrLines: 100,
  /** Characters kept of each line of standard error. */
  stderrLineCharacters: 2_048,
  /** Conversations of single clients that are opened with one HTTP instance at the same time; the next ones wait. */
  openingsPerInstance: 512,
  /** Longest wait for a TCP and TLS connection to a backend. After it: BACKEND_UNAVAILABLE, not delivered. */
  connectMs: 5_000,
  /** Connections per HTTP instance besides the exchanges and the openings: the listening stream, probes, cancels and replies. */
  spareConnections: 8,
  /**
   * Longest wait for what no caller needs: the answer to a cancellation or a session delete, the end of a
   * stream.
   */
  backgroundMs: 2_000,
  /** Replies to a backend that are under way; more are dropped. Of notifications half as many. */
  repliesUnderWay: 64,
  /** Longest time after the start in which `/readyz` waits for the first openings of the loaded instances. */
  firstOpeningsMs: 5_000,
  /** Longest handshake of a starting instance. */
  handshakeMs: 30_000,
  /** First wait before a dead instance is started again; doubled each time, with jitter. */
  restartFirstMs: 500,
  /** Longest wait before a dead instance is started again. */
  restartLongestMs: 30_000,
  /**
   * Longest wait before an HTTP server is asked again that refuses with 401, 403, 404 or 410, and longest wait
   * that one may ask for in `Retry-After` or in an event stream. Source: ADR 109.
   */
  refusedLongestMs: 600_000,
  /** The back-off of an instance starts again after it ran for this time. */
  restartForgivenMs: 60_000,
  /** Restarts in a row for which calls wait: those after back-offs of up to 2 s. Source: ADR 113. */
  expectedRestarts: 3,
  /** Failed probes in a row that make an instance unhealthy. */
  failedProbes: 2,
  /** Failed probes in a row of an unhealthy instance, after which its transport is reopened. */
  failedRechecks: 5,
  /** Shortest time between two probes because of suspicious calls. */
  promptedProbeMs: 1_000,
  /**
   * Hard maximum of a call, whatever progress it reports, unless a setting changes it or the timeout of the call is
   * longer. Source: ADR 9.
   */
  callDefaultBoundMs: 600_000,
  /** Longest hard maximum that a setting or a timeout may give a call. */
  callHardBoundMs: 24 * 60 * 60_000,
  /** The retry budget is this share of the calls of the last ten seconds, plus the allowance. */
  retryBudgetShare: 0.2,
  /** Retries within ten seconds that need no calls. */
  retryBudgetAllowance: 10,
  /** Instances of one registry. Over it: REGISTRY_FULL. */
  instances: 10_000,
  /** Templates of one registry. Over it: REGISTRY_FULL. */
  templates: 2_000,
  /** Environment variables of one instance. Over it, and over the next three: VALIDATION_ERROR. */
  variablesPerInstance: 256,
  /** Headers of one instance. */
  headersPerInstance: 64,
  /** Characters of the metadata of one instance, as JSON. */
  metadataCharacters: 64 * 1024,
  /** Values of metadata, keys included. */
  metadataValues: 1_000,
  /** Memory of all large definitions of one registry (keptBytes). Over it: REGISTRY_FULL. The same on all nodes. */
  instancesBytes: 64 * 1024 * 1024,
  /** Longest text in an entry of the audit log, in UTF-16 units; a longer one is cut. */
  auditTextUnits: 512,
  /** Longest beginning of arguments in the audit log, in UTF-16 units. */
  auditArgumentUnits: 4_096,
  /** Fewest characters of a password. */
  passwordCharacters: 8,
  /** Most bytes of a password: bcrypt ignores those after them. */
  passwordBytes: 72,
  /** Shortest secret that signs or encrypts. Source: RFC 7518, 3.2: the key of HS256 has at least the size of its hash. */
  secretBytes: 32,
  /** Most tasks that are due at the same time and run in one turn of the event loop. */
  tasksPerTurn: 25,
  /** Longest time of such a turn. */
  turnMs: 10,
  /** As how many tasks the start of an instance counts: the answers of its handshake arrive in later turns. Source: ADR 197. */
  startTasks: 5,
  /** Two stop signals closer than this are one Ctrl-C that arrived twice (terminal and npm). */
  sameSignalMs: 500,
} as const;

/** Bounds of the processes and conversations that one instance dedicates to single clients. */
export interface DedicatedBounds {
  /** Programs of the instance that run for single clients. Over it: QUEUE_FULL. Default: LIMITS.dedicatedProcesses. */
  readonly processes?: number;
  /**
   * Part of these processes, and of other conversations, that one owner may hold: above 0, and 1 for all. Default
   * LIMITS.ownerShare.
   */
  readonly share?: number;
}
