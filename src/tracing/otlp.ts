// Sends the spans of this process to an OTLP collector over HTTP, as configured by the OTEL_* variables. Loaded only when they
// name a collector: the SDK and the exporter cost 80 ms and 25 MB. Names and defaults are those of OpenTelemetry. Source: ADR 76.

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
import { reasonOf } from '../domain/errors/errors.ts';
import type { Variables } from '../domain/instances/command.ts';
import { definedFields, jsonIn } from '../domain/json/json.ts';
import { settlesWithin, systemClock } from '../domain/time/clock.ts';
import { VERSION } from '../domain/version.ts';
import { isRegistered } from './tracing.ts';

/** The longest wait for the collector to accept the last spans at a stop, in ms. */
const FLUSH_MS = 2_000;
/** The shortest time between two log lines about problems of the export, in ms. */
const REPORT_MS = 60_000;

type Log = Pick<Logger, 'warn'>;

/** Starts the exporter. Undefined when the program has registered another tracer provider, which then gets the spans. `close`
 * unregisters the provider and sends the remaining spans, for at most FLUSH_MS.
 */
export async function startOtlp(env: Variables, log: Log) {
  const warn = warningOf(log);
  const report = oncePerMinute(warn);
  // An empty variable counts as not set.
  const read: Reader = (name) => env[name]?.trim() || undefined;
  const Exporter = await exporterClass(read, warn);
  if (isRegistered()) return undefined;
  const address = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? read('OTEL_EXPORTER_OTLP_ENDPOINT') ?? '';
  // A URL to the exporter, with the host as its scheme.
  if (URL.canParse(address) && /^(?!https?:)[\w.-]+:\d+(?:\/|$)/i.test(address))
    warn(`the collector "${address}" has no scheme: write http://${address}`);
  const ignore = (): void => {};
  // First, because the exporter reports an invalid configuration when it is made.
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'stagedoor', 'service.version': VERSION }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    sampler: samplerOf(read, warn),
    spanProcessors: [new BatchSpanProcessor({ exporter: new Exporter(), ...batching(read) })],
  });
  trace.setGlobalTracerProvider(provider);
  return {
    close: async (): Promise<void> => {
      trace.disable();
      // A collector that refuses the last spans is a warning like any other.
      const sent = provider.shutdown().catch((thrown: unknown) => report(reasonOf(thrown)));
      await settlesWithin(sent, FLUSH_MS, systemClock.background);
      diag.disable();
    },
  };
}

type Reader = (name: `OTEL_${string}`) => string | undefined;

/** The class of the exporter: that for `http/protobuf` unless JSON is requested. */
async function exporterClass(read: Reader, warn: Report): Promise<new () => SpanExporter> {
  const protocol = read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? read('OTEL_EXPORTER_OTLP_PROTOCOL');
  if (protocol === 'http/json')
    return (await import('@opentelemetry/exporter-trace-otlp-http')).OTLPTraceExporter;
  if (protocol !== undefined && protocol !== 'http/protobuf')
    warn(`the protocol ${protocol} is not supported; http/protobuf is used`);
  return (await import('@opentelemetry/exporter-trace-otlp-proto')).OTLPTraceExporter;
}

/**
 * The sampler that the variables name. Source: OpenTelemetry, environment variable specification, "General SDK
 * configuration".
 */
function samplerOf(read: Reader, warn: Report): Sampler {
  const name = read('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on';
  const root = rootSampler(name.replace(/^parentbased_/, ''), read, warn);
  if (root === undefined) warn(`OTEL_TRACES_SAMPLER=${name} is unknown; parentbased_always_on is used`);
  else if (!name.startsWith('parentbased_')) return root;
  return new ParentBasedSampler({ root: root ?? new AlwaysOnSampler() });
}

function rootSampler(name: string, read: Reader, warn: Report): Sampler | undefined {
  if (name === 'always_on') return new AlwaysOnSampler();
  if (name === 'always_off') return new AlwaysOffSampler();
  if (name !== 'traceidratio') return undefined;
  const argument = read('OTEL_TRACES_SAMPLER_ARG') ?? '1';
  const ratio = Number(argument);
  if (ratio >= 0 && ratio <= 1) return new TraceIdRatioBasedSampler(ratio);
  warn(`OTEL_TRACES_SAMPLER_ARG=${argument} is not a number from 0 to 1; 1 is used`);
  return new TraceIdRatioBasedSampler(1);
}

function batching(read: Reader) {
  const number = (name: `OTEL_BSP_${string}`): number | undefined => {
    const value = Number(read(name));
    return value > 0 ? value : undefined;
  };
  return definedFields({
    scheduledDelayMillis: number('OTEL_BSP_SCHEDULE_DELAY'),
    exportTimeoutMillis: number('OTEL_BSP_EXPORT_TIMEOUT'),
    maxQueueSize: number('OTEL_BSP_MAX_QUEUE_SIZE'),
    maxExportBatchSize: number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE'),
  });
}

type Report = (message: string) => void;

/** A report of the first line of a message, as a warning: the rest may be a stack, or the answer of a collector. */
function warningOf(log: Log): Report {
  return (message) => {
    // The SDK reports an error as JSON.
    const { message: inner = message }: { readonly message?: unknown } = Object(jsonIn(message));
    const reason = String(inner).split('\n', 1).join('').slice(0, 200);
    log.warn({ reason }, 'traces: OpenTelemetry reports a problem');
  };
}

/** A report that is made once a minute at most, for problems that repeat, unlike those of the configuration. */
function oncePerMinute(warn: Report): Report {
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return (message) => {
    const now = systemClock.now();
    if (now < quietUntilMs) return;
    quietUntilMs = now + REPORT_MS;
    warn(message);
  };
}
