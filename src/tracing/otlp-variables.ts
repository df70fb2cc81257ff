// The standard variables of OpenTelemetry that decide whether and how spans are sent. Cheap to import: otlp.ts is loaded
// only when they name a collector. The exporter itself reads the other OTEL_EXPORTER_OTLP_* variables. Source: ADR 76.

const NAMES = [
  'OTEL_SDK_DISABLED',
  'OTEL_TRACES_EXPORTER',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_PROTOCOL',
  'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL',
  'OTEL_TRACES_SAMPLER',
  'OTEL_TRACES_SAMPLER_ARG',
  'OTEL_BSP_SCHEDULE_DELAY',
  'OTEL_BSP_EXPORT_TIMEOUT',
  'OTEL_BSP_MAX_QUEUE_SIZE',
  'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
] as const;

export type OtelVariables = { readonly [Name in (typeof NAMES)[number]]?: string | undefined };

/** Undefined unless they name a collector and tracing is not disabled. An empty variable counts as not set. */
export function otelVariables(env: Readonly<Record<string, string | undefined>>): OtelVariables | undefined {
  const variables: OtelVariables = Object.fromEntries(NAMES.map((name) => [name, env[name]?.trim()]));
  const { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ofTraces } = variables;
  const isDisabled = variables.OTEL_SDK_DISABLED?.toLowerCase() === 'true';
  const hasNoExporter = variables.OTEL_TRACES_EXPORTER === 'none';
  return isDisabled || hasNoExporter || !(ofTraces || all) ? undefined : variables;
}
