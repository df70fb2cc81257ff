// W3C Trace Context: reads and writes `traceparent` and `tracestate`, without the registered propagator, because MCP reserves
// exactly these names in `_meta`. Baggage is not read. Source: https://www.w3.org/TR/trace-context/; SEP-414; ADR 76.

import { createTraceState, isSpanContextValid, type SpanContext, TraceFlags } from '@opentelemetry/api';
import type { TraceFields } from '../domain/trace.ts';

/** Version, trace id, parent id, flags; a later version may add fields. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** Longest `traceparent` and `tracestate` that are read. Source: section 3.3.1.5 for the latter. */
const LONGEST_PARENT = 128;
const LONGEST_STATE = 512;

/** Undefined for anything but a valid context. */
export function readTrace(parent: unknown, state?: unknown): SpanContext | undefined {
  if (typeof parent !== 'string' || parent.length > LONGEST_PARENT) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(parent.trim()) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  const hasState = typeof state === 'string' && state !== '' && state.length <= LONGEST_STATE;
  const context: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
    ...(hasState ? { traceState: createTraceState(state) } : {}),
  };
  return isSpanContextValid(context) ? context : undefined;
}

/** The fields that make a span the parent of others. */
export function traceFields({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceFields {
  const flags = (traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0');
  const fields = { traceparent: `00-${traceId}-${spanId}-${flags}` };
  const tracestate = traceState?.serialize() ?? '';
  return tracestate === '' ? fields : { ...fields, tracestate };
}
