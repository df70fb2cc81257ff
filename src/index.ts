// The public API for programs that embed a gateway: named exports only. It reaches no types of MikroORM and XState, which
// spec/system/deploy/installed.spec.ts checks. The HTTP server and the command line are not part of it.

// First, so that a Node that is too old is refused before anything else is evaluated.
import './domain/required-node.ts';

export type { StrategyName, TemplatePolicy } from './balancing/policy.ts';
export type { LoadBalancerChange, LoadBalancerSettings } from './balancing/policy-schemas.ts';
export type { TemplateSettings } from './balancing/template-settings.ts';
export type {
  ClientCounts,
  InstanceClients,
  InstanceMetrics,
  MetricsSummary,
} from './counts/traffic-counts.ts';
export type { ExchangeOptions, ExchangeRequest, SourcedEvent } from './domain/calls/exchange.ts';
export type { ExchangeEvent } from './domain/calls/exchange-event.ts';
export {
  type Delivered,
  type ErrorCode,
  type ErrorFacts,
  GatewayError,
  type HttpRefusal,
} from './domain/errors/errors.ts';
export type { ActorInspection, ActorInspector, InspectedActor } from './domain/events/actor-inspection.ts';
export type { EventName, ExchangeOutcome, GatewayEvent, GatewayEvents } from './domain/events/events.ts';
export type { ImportReport, SyncOptions, SyncOutcome } from './domain/instances/found-instances.ts';
export type {
  InstanceDefinition,
  InstanceInput,
  InstanceSnapshot,
  InstanceState,
} from './domain/instances/instance.ts';
export type { TransportKind } from './domain/instances/transport-kinds.ts';
export type { JsonObject, JsonText, JsonValue } from './domain/json/json.ts';
export type { JsonRpcError } from './domain/mcp/jsonrpc.ts';
export type { ListField } from './domain/mcp/mcp.ts';
export type { Clock } from './domain/time/clock.ts';
export { createGateway, type Gateway } from './gateway/gateway.ts';
export type {
  CallResult,
  ClientStats,
  CloseOptions,
  ConnectionOutcome,
  ConnectionTestOptions,
  DiscoveryOptions,
  GatewayOptions,
  GatewayPhase,
  GatewayStats,
  InProcessInput,
  InstanceChange,
  ListResult,
  RequestOptions,
  Server,
  ShownSession,
  ShownTemplate,
  TemplateHealth,
  TemplateSnapshot,
} from './gateway/gateway-types.ts';
export { type Cipher, createCipher } from './persistence/cipher.ts';
export { type OpenStoreOptions, openStore, StoreOpenError } from './persistence/open.ts';
export { type RevisionChange, watchRevision } from './persistence/revision-watch.ts';
export type { Store } from './persistence/store.ts';
export type {
  FileContents,
  RegisterOptions,
  Registration,
} from './registry/registry-types.ts';
export type { InProcessHandler } from './transports/open-options.ts';
