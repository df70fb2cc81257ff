// The spans of the gateway: one per HTTP request (SERVER), one per attempt at an instance (CLIENT), and one per
// HTTP exchange of an attempt (CLIENT). Names and attributes follow the semantic conventions for MCP and HTTP;
// those of the gateway begin with `stagedoor.`. No span contains an argument, a result, a query or a credential.
// Source: ADR 76.

import {
  type Attributes,
  type Context,
  context,
  createTraceState,
  isSpanContextValid,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { withoutCredentials } from '../domain/accounts/written-credentials.ts';
import { type CallEnd, type CallOutcome, outcomeOf } from '../domain/calls/exchange-event.ts';
import type {
  AttemptDetails,
  AttemptTrace,
  PostTrace,
  RequestTrace,
  TraceFields,
} from '../domain/calls/request-trace.ts';
import type { ErrorCode } from '../domain/errors/errors.ts';
import { hasProcesses, isNetworked, type TransportKind } from '../domain/instances/transport-kinds.ts';
import { isFields, type JsonFields } from '../domain/json/json.ts';
import type { HttpHeaders } from '../domain/text.ts';
import { systemClock } from '../domain/time/clock.ts';
import { VERSION } from '../domain/version.ts';

/** The most UTF-16 units of the name of a tool or prompt in a span: clients choose these names. */
const MAX_NAME_UNITS = 128;

/** The trace of calls of an embedding program: its active span is the parent of the attempts. */
export function embeddedTrace(): RequestTrace {
  const parent = context.active();
  return { attempt: (details) => attemptSpan(new SpanSource(), parent, details) };
}

/** Makes a span and its children. They share a clock: wall clock at the start, monotonic after it. Milliseconds since 1970. */
class SpanSource {
  readonly tracer = trace.getTracer('stagedoor', VERSION);
  readonly startMs = systemClock.wall();
  readonly #startedAt = systemClock.now();

  now(): number {
    return this.startMs + (systemClock.now() - this.#startedAt);
  }

  /** A span that begins now. */
  client(name: string, attributes: Attributes, parent: Context): Span {
    return this.tracer.startSpan(name, { kind: SpanKind.CLIENT, startTime: this.now(), attributes }, parent);
  }
}

// --- the request of a client -------------------------------------------------------------------------------

interface McpRequestInfo {
  readonly method: string;
  readonly params?: JsonFields | undefined;
  readonly id?: unknown;
}

interface RequestEnd {
  readonly httpMethod: string;
  /** The pattern of its path; undefined when no route matched. */
  readonly route: string | undefined;
  readonly status: number;
  readonly requestId: string;
  readonly template: string | undefined;
  readonly view: string | undefined;
  readonly session: string | undefined;
  readonly attempts: number | undefined;
  readonly outcome: CallOutcome | undefined;
  readonly errorCode: ErrorCode | number | undefined;
}

/**
 * The span of an HTTP request that arrives now, from the registered provider. It begins when the MCP request is known, since its
 * `_meta` may name the parent, with the time of arrival.
 * Source: semantic conventions for MCP, "Context propagation".
 */
export class RequestSpan implements RequestTrace {
  readonly #source = new SpanSource();
  readonly #headers: HttpHeaders;
  #span: Span | undefined;
  #context: Context | undefined;
  #isMcp = false;

  constructor(headers: HttpHeaders) {
    this.#headers = headers;
  }

  /** Begins the span for an MCP request; without one, for HTTP alone. Only the first call counts. */
  begin(mcp?: McpRequestInfo): Span {
    if (this.#span !== undefined) return this.#span;
    const { traceparent, tracestate, 'mcp-protocol-version': revision } = this.#headers;
    const meta = isFields(mcp?.params?._meta) ? mcp.params._meta : {};
    const ofHeader = readTrace(traceparent, tracestate);
    const ofMeta = readTrace(meta.traceparent, meta.tracestate);
    const parent = ofMeta ?? ofHeader;
    const active = context.active();
    const span = this.#source.tracer.startSpan(
      mcp === undefined ? 'HTTP' : nameOf(mcp.method, nameIn(mcp)),
      {
        kind: SpanKind.SERVER,
        startTime: this.#source.startMs,
        attributes: {
          ...(mcp === undefined ? {} : mcpAttributes(mcp.method, nameIn(mcp))),
          ...(mcp?.id === undefined ? {} : { 'jsonrpc.request.id': shown(String(mcp.id)) }),
          ...(typeof revision === 'string' ? { 'mcp.protocol.version': shown(revision) } : {}),
          'network.transport': 'tcp',
          'network.protocol.name': 'http',
        },
        // The span of the HTTP client, when another span made the message.
        ...(ofMeta !== undefined && ofHeader !== undefined && ofMeta.spanId !== ofHeader.spanId
          ? { links: [{ context: ofHeader }] }
          : {}),
      },
      parent === undefined ? active : trace.setSpanContext(active, parent),
    );
    this.#isMcp = mcp !== undefined;
    this.#span = span;
    this.#context = trace.setSpan(active, span);
    return span;
  }

  /** The id of the trace; undefined before `begin`. */
  get traceId(): string | undefined {
    return this.#span?.spanContext().traceId;
  }

  attempt(details: AttemptDetails): AttemptTrace {
    const span = this.begin();
    const parent = this.#context ?? trace.setSpan(context.active(), span);
    return attemptSpan(this.#source, parent, details);
  }

  end({ httpMethod, route, status, errorCode, outcome, ...details }: RequestEnd): void {
    const span = this.begin();
    if (span.isRecording()) {
      if (!this.#isMcp) span.updateName(route === undefined ? httpMethod : `${httpMethod} ${route}`);
      span.setAttributes({
        'http.request.method': httpMethod,
        'http.route': route,
        'http.response.status_code': status,
        'mcp.session.id': details.session,
        'stagedoor.request_id': details.requestId,
        'stagedoor.template': details.template,
        'stagedoor.view': details.view,
        'stagedoor.attempts': details.attempts,
        'stagedoor.outcome': outcome,
      });
      const error = outcome === 'tool_error' ? 'tool_error' : errorCode;
      if (outcome !== 'cancelled' && error !== undefined && (outcome !== undefined || status >= 500))
        fail(span, error);
      else if (status >= 500) fail(span, String(status));
    }
    span.end(this.#source.now());
  }
}

// --- an attempt at an instance, and its exchanges ----------------------------------------------------------

function attemptSpan(source: SpanSource, parent: Context, details: AttemptDetails): AttemptTrace {
  const { method, template, view, instanceId, transport, number } = details;
  const name = nameIn(details);
  const attributes = {
    ...mcpAttributes(method, name),
    ...networkOf(transport),
    'stagedoor.template': template,
    ...(view === undefined ? {} : { 'stagedoor.view': view }),
    'stagedoor.instance': instanceId,
    'stagedoor.attempt': number,
  };
  const span = source.client(nameOf(method, name), attributes, parent);
  const own = trace.setSpan(parent, span);
  let answer: CallEnd | undefined;
  return {
    fields: traceFields(span.spanContext()),
    speaks: (protocolVersion) => {
      if (protocolVersion !== '') span.setAttribute('mcp.protocol.version', protocolVersion);
    },
    post: (origin) => postSpan(source, own, origin),
    answered: (event) => {
      answer = event;
    },
    ended: (error) => {
      const end: CallEnd =
        answer ?? (error === undefined ? { kind: 'cancelled' } : { kind: 'failed', code: error });
      if (span.isRecording()) {
        const outcome = outcomeOf(method, end);
        span.setAttribute('stagedoor.outcome', outcome);
        if (outcome === 'tool_error') fail(span, outcome);
        else if (end.kind === 'error') fail(span, end.error.code);
        else if (end.kind === 'failed') fail(span, end.code);
      }
      span.end(source.now());
    },
  };
}

function postSpan(source: SpanSource, parent: Context, origin: string): PostTrace {
  const { hostname, port, protocol } = new URL(origin);
  const attributes = {
    'http.request.method': 'POST',
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  };
  const span = source.client('POST', attributes, parent);
  return {
    fields: traceFields(span.spanContext()),
    ended: (status) => {
      if (status !== 0) span.setAttribute('http.response.status_code', status);
      if (status >= 400) fail(span, String(status));
      span.end(source.now());
    },
  };
}

// --- attributes --------------------------------------------------------------------------------------------

/** The attributes of a transport. Source: semantic conventions for MCP, "Recording MCP transport". */
function networkOf(transport: TransportKind): Attributes {
  if (isNetworked({ transport })) return { 'network.transport': 'tcp', 'network.protocol.name': 'http' };
  return hasProcesses({ transport }) ? { 'network.transport': 'pipe' } : {};
}

/** The name of a tool or a prompt; the URI of a resource is an argument, which no span contains. */
function nameIn({ method, params }: Pick<McpRequestInfo, 'method' | 'params'>): string | undefined {
  const isNamed = method === 'tools/call' || method === 'prompts/get';
  return isNamed && typeof params?.name === 'string' ? params.name : undefined;
}

function nameOf(method: string, name: string | undefined): string {
  const text = name === undefined ? method : `${method} ${name}`;
  return withoutCredentials(text, 2 * MAX_NAME_UNITS);
}

/** The shown part of a text, in whole characters: half of a surrogate pair is not valid text for a collector. */
function shown(text: string): string {
  return withoutCredentials(text, MAX_NAME_UNITS);
}

function mcpAttributes(method: string, name: string | undefined): Attributes {
  const attributes: Attributes = { 'mcp.method.name': shown(method) };
  if (method === 'tools/call') attributes['gen_ai.operation.name'] = 'execute_tool';
  if (name !== undefined)
    attributes[method === 'prompts/get' ? 'gen_ai.prompt.name' : 'gen_ai.tool.name'] = shown(name);
  return attributes;
}

/** Marks the span as failed. A number is the code of a JSON-RPC error. */
function fail(span: Span, error: string | number): void {
  span.setAttribute('error.type', String(error));
  if (typeof error === 'number') span.setAttribute('rpc.response.status_code', String(error));
  span.setStatus({ code: SpanStatusCode.ERROR });
}

// --- W3C Trace Context, without the registered propagator: MCP reserves exactly its names in `_meta`. Baggage is ignored.
// Source: https://www.w3.org/TR/trace-context/; SEP-414; ADR 76.

/** The form of a `traceparent`: version, trace id, parent id, flags; a later version may add fields. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** The most characters of `traceparent` and `tracestate` that are read. Source: section 3.3.1.5 for the latter. */
const MAX_PARENT_LENGTH = 128;
const MAX_STATE_LENGTH = 512;

/** The context in `traceparent` and `tracestate`; undefined unless it is valid. */
export function readTrace(parent: unknown, state?: unknown): SpanContext | undefined {
  if (typeof parent !== 'string' || parent.length > MAX_PARENT_LENGTH) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(parent.trim()) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  const hasState = typeof state === 'string' && state !== '' && state.length <= MAX_STATE_LENGTH;
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
