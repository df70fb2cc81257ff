// Whether this process traces, checked once per request. The API of OpenTelemetry costs 14 ms and 6 MB, so it
// is loaded only after an embedding program or otlp.ts registered a tracer provider. Source: ADR 76.

import type { Variables } from '../domain/instances/command.ts';

/** The global property under which every copy of the API registers providers. */
const REGISTRY: unique symbol = Symbol.for('opentelemetry.js.api.1');

/** The spans of this process, once they can be made. */
export class Tracing {
  #spans: typeof import('./spans.ts') | undefined;

  /** The spans; undefined while no provider is registered, and while the API is loading after that. */
  get spans(): typeof import('./spans.ts') | undefined {
    if (!isRegistered()) return undefined;
    if (this.#spans === undefined) void this.ready();
    return this.#spans;
  }

  /** Resolves when `spans` is defined, if a provider is registered. */
  async ready(): Promise<void> {
    if (isRegistered()) this.#spans ??= await import('./spans.ts');
  }
}

/** Whether this process has a tracer provider. */
export function isRegistered(): boolean {
  const global: OpenTelemetryGlobal = globalThis;
  return global[REGISTRY]?.trace !== undefined;
}

/** The additions of the OpenTelemetry API to the global object. */
interface OpenTelemetryGlobal extends Partial<typeof globalThis> {
  readonly [REGISTRY]?: { readonly trace?: unknown };
}

/** True when the standard variables of OpenTelemetry name a collector and do not disable tracing: otlp.ts is loaded only then. */
export function namesCollector(env: Variables): boolean {
  const isDisabled = env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true';
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ofTraces, OTEL_EXPORTER_OTLP_ENDPOINT: all } = env;
  return (
    !isDisabled && env.OTEL_TRACES_EXPORTER?.trim() !== 'none' && Boolean(ofTraces?.trim() || all?.trim())
  );
}
