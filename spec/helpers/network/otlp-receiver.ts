// A small OpenTelemetry collector over HTTP that records what it receives. Spans are read from JSON only.

import type { IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { startRawServer } from '../../transports/raw-server.ts';

/** One span as it was sent, with its attributes as an object. */
export interface ReceivedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** 0 unset, 2 error. */
  readonly status: number;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
}

/** OTLP numbers of span kinds. */
export const SERVER = 2;
export const CLIENT = 3;

export interface OtlpReceiver {
  readonly url: string;
  readonly requests: readonly {
    readonly headers: IncomingHttpHeaders;
    readonly path: string;
    readonly body: Buffer;
  }[];
  /** The spans of all JSON requests. */
  spans(): ReceivedSpan[];
  /** The resource attributes of the first JSON request. */
  resource(): Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}

/** Listens on a free port of 127.0.0.1. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const requests: { headers: IncomingHttpHeaders; path: string; body: Buffer }[] = [];
  const { port, close } = await startRawServer(async (request, response) => {
    const { headers, url: path = '' } = request;
    requests.push({ headers, path, body: await buffer(request) });
    response.writeHead(200, { 'content-type': headers['content-type'] ?? 'application/json' });
    response.end(headers['content-type'] === 'application/json' ? '{}' : undefined);
  });
  const resources = (): OtlpResource[] =>
    requests
      .filter(({ headers }) => headers['content-type'] === 'application/json')
      .flatMap(({ body }) => (JSON.parse(String(body)) as { resourceSpans: OtlpResource[] }).resourceSpans);
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    spans: () =>
      resources().flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(receivedSpan))),
    resource: () => asObject(resources()[0]?.resource.attributes ?? []),
    close,
  };
}

interface OtlpAttribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface OtlpSpan extends Omit<ReceivedSpan, 'attributes' | 'status' | 'links' | 'startMs' | 'endMs'> {
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly OtlpAttribute[];
  readonly status?: { readonly code?: number };
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
}

interface OtlpResource {
  readonly resource: { readonly attributes: readonly OtlpAttribute[] };
  readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
}

function receivedSpan(span: OtlpSpan): ReceivedSpan {
  const { name, kind, traceId, spanId, parentSpanId, attributes, status, links = [] } = span;
  const [startMs = 0, endMs = 0] = [span.startTimeUnixNano, span.endTimeUnixNano].map(
    (nanoseconds) => Number(BigInt(nanoseconds) / 1_000n) / 1_000,
  );
  const parent = parentSpanId || undefined;
  return {
    ...{ name, kind, traceId, spanId, parentSpanId: parent, startMs, endMs },
    ...{ attributes: asObject(attributes), status: status?.code ?? 0 },
    links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId })),
  };
}

function asObject(attributes: readonly OtlpAttribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
