// The standard variables of OpenTelemetry that decide whether and how spans are sent. Cheap to import: otlp.ts is loaded only when
// they name a collector. The exporter reads the others of OTEL_EXPORTER_OTLP_* itself. Source: ADR 76.

/** Those that are read here. */
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

/** Undefined unless they name a collector, and tracing is not turned off. An empty variable is one that is not set. */
export function otelVariables(env: Readonly<Record<string, string | undefined>>): OtelVariables | undefined {
  const variables: OtelVariables = Object.fromEntries(NAMES.map((name) => [name, env[name]?.trim()]));
  const { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ofTraces } = variables;
  const isOff = variables.OTEL_SDK_DISABLED?.toLowerCase() === 'true';
  const isElsewhere = variables.OTEL_TRACES_EXPORTER === 'none';
  return isOff || isElsewhere || !(ofTraces || all) ? undefined : variables;
}
