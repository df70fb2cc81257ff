// Sends the spans of this process to an OTLP collector over HTTP, as the variables OTEL_* say. Loaded only where they name a
// collector: the SDK and the exporter cost 80 ms and 25 MB. Names and defaults are those of OpenTelemetry. Source: ADR 76.

import { setTimeout as delay } from 'node:timers/promises';
import { DiagLogLevel, diag, trace } from '@opentelemetry/api';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import { VERSION } from '../domain/version.ts';
import type { OtelVariables } from './otlp-variables.ts';

/** Longest wait of a stop for a collector that is slow to take the last spans, in ms. */
const FLUSH_MS = 2_000;
/** Shortest time between two lines about a collector that takes none, in ms. */
const COMPLAINT_MS = 60_000;

type Log = Pick<Logger, 'warn'>;

/** What sends the spans. */
export interface Otlp {
  /** Sends what is left, for at most FLUSH_MS, and registers nothing any more. */
  close(): Promise<void>;
}

/** Starts it. Undefined when the program has a tracer provider already: that one gets the spans. */
export async function startOtlp(variables: OtelVariables, log: Log): Promise<Otlp | undefined> {
  const complain = complainer(log);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'stagedoor', 'service.version': VERSION }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    sampler: samplerOf(variables, complain),
    spanProcessors: [
      new BatchSpanProcessor({ exporter: await exporterOf(variables, complain), ...batching(variables) }),
    ],
  });
  if (!trace.setGlobalTracerProvider(provider)) {
    await provider.shutdown();
    return undefined;
  }
  const quiet = (): void => {};
  diag.setLogger(
    { error: complain, warn: complain, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  return {
    close: async () => {
      trace.disable();
      await Promise.race([provider.shutdown(), delay(FLUSH_MS, undefined, { ref: false })]);
      diag.disable();
    },
  };
}

/** `http/protobuf` unless JSON is asked for. */
async function exporterOf(
  { OTEL_EXPORTER_OTLP_PROTOCOL: general, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: own }: OtelVariables,
  complain: Complain,
): Promise<SpanExporter> {
  const protocol = own || general || 'http/protobuf';
  if (protocol === 'http/json') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
    return new OTLPTraceExporter();
  }
  if (protocol !== 'http/protobuf')
    complain(`the protocol ${protocol} is not supported; http/protobuf is used`);
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter();
}

/** Source: OpenTelemetry, environment variable specification, "General SDK configuration". */
function samplerOf(
  { OTEL_TRACES_SAMPLER: name = '', OTEL_TRACES_SAMPLER_ARG: argument = '' }: OtelVariables,
  complain: Complain,
): Sampler {
  const isParentBased = name === '' || name.startsWith('parentbased_');
  const root = rootSampler(name.replace(/^parentbased_/, '') || 'always_on', argument);
  if (root !== undefined) return isParentBased ? new ParentBasedSampler({ root }) : root;
  complain(`OTEL_TRACES_SAMPLER=${name} is unknown; parentbased_always_on is used`);
  return new ParentBasedSampler({ root: new AlwaysOnSampler() });
}

function rootSampler(name: string, argument: string): Sampler | undefined {
  const ratio = argument === '' ? 1 : Number(argument);
  if (name === 'always_on') return new AlwaysOnSampler();
  if (name === 'always_off') return new AlwaysOffSampler();
  return name === 'traceidratio' ? new TraceIdRatioBasedSampler(ratio) : undefined;
}

function batching(variables: OtelVariables) {
  const number = (name: keyof OtelVariables): number | undefined => {
    const value = Number(variables[name] || Number.NaN);
    return value > 0 ? value : undefined;
  };
  const options = {
    scheduledDelayMillis: number('OTEL_BSP_SCHEDULE_DELAY'),
    exportTimeoutMillis: number('OTEL_BSP_EXPORT_TIMEOUT'),
    maxQueueSize: number('OTEL_BSP_MAX_QUEUE_SIZE'),
    maxExportBatchSize: number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE'),
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

type Complain = (message: string) => void;

/** Only the first line of a message: what follows may be a stack, or the answer of a collector. */
function complainer(log: Log): Complain {
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  return (message) => {
    const now = performance.now();
    if (now < silentUntilMs) return;
    silentUntilMs = now + COMPLAINT_MS;
    log.warn({ reason: reasonIn(message) }, 'traces: OpenTelemetry reports a problem');
  };
}

/** The SDK hands an error over as JSON. */
function reasonIn(message: string): string {
  try {
    const { message: inner }: { readonly message?: unknown } = Object(JSON.parse(message));
    if (typeof inner === 'string') return inner.slice(0, 200);
  } catch {
    // It was plain text.
  }
  return message.split('\n', 1).join('').slice(0, 200);
}
