// Bounds that only HTTP knows: size of what is read, patience with what is written.
// Sizes of bodies and headers are in domain/limits.ts; nothing here is a setting yet.

/** Bounds of this room. Sizes in bytes, times in milliseconds or as named, counts as they are. */
export const HTTP_LIMITS = {
  /** Bytes of a refused body that are read and thrown away so that the answer arrives; then the connection ends. */
  drainedBytes: 64 * 1024 * 1024,
  /** A body counts as one request for each so many bytes that are begun; larger ones are charged before they are read. */
  chargedBodyBytes: 64 * 1024,
  /** Bodies larger than that of one caller that are read at the same time. Over it: QUEUE_FULL. */
  uploadsPerCaller: 16,
  /** Bodies up to so many bytes are in no budget: calls in flight bound them. */
  uncountedBodyBytes: 4 * 1024,
  /** Fields of a form. */
  formFields: 64,
  /** Bytes of a form: it comes from somebody who is not known yet. */
  formBytes: 64 * 1024,
  /** Refusals of one caller that the audit log records in a minute; all unknown callers are one. */
  recordedRefusalsPerMinute: 30,
  /** Characters of a path that are written to the log. */
  loggedPathCharacters: 512,
  /** Characters of a media type that are looked at. */
  mediaTypeCharacters: 100,
  /** Unsent bytes of one event stream; over it notifications are left out, never the result. */
  streamBufferBytes: 1024 * 1024,
  /** Newest events of the gateway that are kept for readers of `GET /events`; about 1 MB. */
  keptEvents: 4_096,
  /** Longest time in which a client takes nothing of an answer that waits for it; then the connection is cut. */
  unreadAnswerMs: 30_000,
  /** The caller of an open event stream is looked at again about so often, in ms. */
  callerCheckMs: 5_000,
  /** Distance of the comments that keep an event stream alive, so that nothing on the way gives up. */
  keepAliveMs: 15_000,
  /** Seconds a browser may remember the answer to a preflight. */
  preflightSeconds: 600,
  /** Most records of one page of a listing. */
  pageRecords: 1_000,
  /** Longest `?wait=` of a registration, in seconds. */
  registrationWaitSeconds: 300,
} as const;
