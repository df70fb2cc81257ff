// Limits of HTTP that are not settings. Sizes of bodies and headers are in domain/limits.ts.

export const HTTP_LIMITS = {
  /** Bytes of a refused body that are discarded so that the answer arrives; then the connection ends. */
  drainedBytes: 64 * 1024 * 1024,
  /** A body counts as one request for each started block of this size; larger bodies are counted before they are read. */
  requestBlockBytes: 64 * 1024,
  /** Bodies over `requestBlockBytes` of one caller that are read at the same time; more are QUEUE_FULL. */
  uploadsPerCaller: 16,
  /** Bodies up to this size are not counted in memory: the limit of calls in flight bounds them. */
  uncountedBodyBytes: 4 * 1024,
  /** Values in the body of a management route, keys included: it is checked by schemas, which takes a microsecond for each. */
  managementValues: 10_000,
  /** Small, because the sender of a form is not authenticated. */
  formBytes: 64 * 1024,
  /** Characters of a path that logs and errors repeat. */
  loggedPathCharacters: 512,
  mediaTypeCharacters: 100,
  /** The longest `Accept` header that is read; a request with a longer one is answered with JSON. */
  acceptCharacters: 1_024,
  /** Unsent bytes of one event stream over which notifications are dropped; results never are. */
  streamBufferBytes: 1024 * 1024,
  /** The number of newest events of the gateway kept for `GET /events`; about 1 MB. */
  keptEvents: 4_096,
  /** Readers of `GET /events` at one time, and the part of them that one caller may have. Over it: QUEUE_FULL. */
  eventStreams: 1_000,
  eventStreamShare: 0.05,
  /** The shortest time between two writes of events to one reader. */
  eventIntervalMs: 200,
  /** Sustained rate of all readers together: at 50 readers it takes 6 % of a processor. */
  eventsPerSecond: 10_000,
  /** The longest time in which a client reads nothing of a waiting answer; then its connection is closed. */
  unreadAnswerMs: 30_000,
  /** Approximate interval at which the caller of an open event stream is checked again. */
  callerCheckMs: 5_000,
  /** Interval of the comments that keep an event stream alive through proxies. */
  keepAliveMs: 15_000,
  /** Seconds a browser may remember the answer to a preflight. */
  preflightSeconds: 600,
  pageRecords: 1_000,
  /** The longest `?wait=` of a registration, in seconds. */
  registrationWaitSeconds: 300,
} as const;
