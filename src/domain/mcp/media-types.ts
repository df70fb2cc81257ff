// The media types of answers over HTTP, the same in both eras. Source: MCP 2025-11-25 and 2026-07-28 basic/transports.

export const JSON_TYPE = 'application/json';
export const EVENT_STREAM_TYPE = 'text/event-stream';
/** The header `Accept` of a client that takes either answer, as nearly all MCP clients write it. */
export const MCP_ACCEPT = `${JSON_TYPE}, ${EVENT_STREAM_TYPE}`;
