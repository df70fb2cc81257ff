// Sends the spans of this process to an OTLP collector over HTTP, as configured by the OTEL_* variables. Loaded only when they
// name a collector: the SDK and the exporter cost 80 ms and 25 MB. Names and defaults are those of OpenTelemetry. Source: ADR 76.

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

/** Longest wait for the collector to accept the last spans at a stop, in ms. */
const FLUSH_MS = 2_000;
/** Shortest time between two log lines about problems, in ms. */
const REPORT_MS = 60_000;

type Log = Pick<Logger, 'warn'>;

export interface Otlp {
  /** Unregisters the provider and sends the remaining spans, for at most FLUSH_MS. */
  close(): Promise<void>;
}

/** Starts the exporter. Undefined when the program has registered another tracer provider, which then gets the spans. */
export async function startOtlp(variables: OtelVariables, log: Log): Promise<Otlp | undefined> {
  const report = reporterFor(log);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'stagedoor', 'service.version': VERSION }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    sampler: samplerOf(variables, report),
    spanProcessors: [
      new BatchSpanProcessor({ exporter: await exporterOf(variables, report), ...batching(variables) }),
    ],
  });
  if (!trace.setGlobalTracerProvider(provider)) {
    await provider.shutdown();
    return undefined;
  }
  const ignore = (): void => {};
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
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

/** `http/protobuf` unless JSON is requested. */
async function exporterOf(
  { OTEL_EXPORTER_OTLP_PROTOCOL: general, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: own }: OtelVariables,
  report: Report,
): Promise<SpanExporter> {
  const protocol = own || general || 'http/protobuf';
  if (protocol === 'http/json') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
    return new OTLPTraceExporter();
  }
  if (protocol !== 'http/protobuf')
    report(`the protocol ${protocol} is not supported; http/protobuf is used`);
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter();
}

/** Source: OpenTelemetry, environment variable specification, "General SDK configuration". */
function samplerOf(
  { OTEL_TRACES_SAMPLER: name = '', OTEL_TRACES_SAMPLER_ARG: argument = '' }: OtelVariables,
  report: Report,
): Sampler {
  const isParentBased = name === '' || name.startsWith('parentbased_');
  const root = rootSampler(name.replace(/^parentbased_/, '') || 'always_on', argument, report);
  if (root !== undefined) return isParentBased ? new ParentBasedSampler({ root }) : root;
  report(`OTEL_TRACES_SAMPLER=${name} is unknown; parentbased_always_on is used`);
  return new ParentBasedSampler({ root: new AlwaysOnSampler() });
}

function rootSampler(name: string, argument: string, report: Report): Sampler | undefined {
  if (name === 'always_on') return new AlwaysOnSampler();
  if (name === 'always_off') return new AlwaysOffSampler();
  if (name !== 'traceidratio') return undefined;
  const ratio = argument === '' ? 1 : Number(argument);
  if (ratio >= 0 && ratio <= 1) return new TraceIdRatioBasedSampler(ratio);
  report(`OTEL_TRACES_SAMPLER_ARG=${argument} is not a number from 0 to 1; 1 is used`);
  return new TraceIdRatioBasedSampler(1);
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

type Report = (message: string) => void;

/** Only the first line of a message: the rest may be a stack, or the answer of a collector. */
function reporterFor(log: Log): Report {
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return (message) => {
    const now = performance.now();
    if (now < quietUntilMs) return;
    quietUntilMs = now + REPORT_MS;
    log.warn({ reason: reasonIn(message) }, 'traces: OpenTelemetry reports a problem');
  };
}

/** The SDK reports an error as JSON. */
function reasonIn(message: string): string {
  try {
    const { message: inner }: { readonly message?: unknown } = Object(JSON.parse(message));
    if (typeof inner === 'string') return inner.slice(0, 200);
  } catch {
    // The message is plain text.
  }
  return message.split('\n', 1).join('').slice(0, 200);
}
