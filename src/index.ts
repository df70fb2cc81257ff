// The public API for programs that embed a gateway: named exports only. It reaches no types of MikroORM and XState, which
// spec/system/deploy/installed.spec.ts checks. The HTTP server and the command line are not part of it.

// First, so that a Node that is too old is refused before anything else is evaluated.
import './domain/required-node.ts';

export type { StrategyName, TemplatePolicy } from './balancing/policy.ts';
export type { LoadBalancerChange, LoadBalancerSettings } from './balancing/policy-schemas.ts';
export type { StoredTemplate as TemplateSettings } from './balancing/stored-template.ts';
export type {
  ClientCounts,
  InstanceClients,
  InstanceMetrics,
  MetricsSummary,
} from './counts/traffic-counts.ts';
export type { DefinedRoles, RoleRights, Scope } from './domain/accounts/account.ts';
export type { ToolRights } from './domain/accounts/rights.ts';
export type { ExchangeOptions, ExchangeRequest, OpenReport, SourcedEvent } from './domain/calls/exchange.ts';
export type { ExchangeEvent } from './domain/calls/exchange-event.ts';
export {
  type Delivered,
  type ErrorCode,
  type ErrorFacts,
  GatewayError,
  type HttpRefusal,
  type ValidationItem,
} from './domain/errors/errors.ts';
export type { ActorInspection, ActorInspector, InspectedActor } from './domain/events/actor-inspection.ts';
export type { EventName, ExchangeOutcome, GatewayEvent, GatewayEvents } from './domain/events/events.ts';
export type { InstanceAuth } from './domain/instances/account-connection.ts';
export type { ProgramUser } from './domain/instances/command.ts';
export type {
  ImportReport,
  SyncOptions,
  SyncOutcome,
  SyncReport,
} from './domain/instances/found-instances.ts';
export type {
  DedicatedBounds,
  InstanceDefinition,
  InstanceInput,
  InstanceSnapshot,
  InstanceState,
  TemplateAuth,
} from './domain/instances/instance.ts';
export type { TransportKind } from './domain/instances/transport-kinds.ts';
export type { JsonObject, JsonText, JsonValue } from './domain/json/json.ts';
export type { Owner } from './domain/mcp/client.ts';
export type { JsonRpcError } from './domain/mcp/jsonrpc.ts';
export type { ListField, WithheldItem } from './domain/mcp/mcp.ts';
export type { ByteBounds } from './domain/memory/held-bytes.ts';
export type { RegistrationOrigin } from './domain/registration/registration.ts';
export type { Clock } from './domain/time/clock.ts';
export type {
  AggregatePresentation,
  CallLimiter,
  CountedCall,
  StoredView,
  ViewDefinition,
  ViewLimit,
  ViewNames,
  ViewProblem,
  ViewSource,
} from './domain/views/view.ts';
export { createGateway, type Gateway } from './gateway/gateway.ts';
export type {
  BackendAccountOptions,
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
  NodeOptions,
  ProgramSettings,
  RequestOptions,
  ServedViews,
  Server,
  ShownSession,
  ShownTemplate,
  TemplateHealth,
  TemplateSnapshot,
  ViewPreview,
  ViewRecord,
  ViewTool,
} from './gateway/gateway-types.ts';
export type { ErrorAnswer } from './gateway/promised-answers.ts';
export { type Cipher, createCipher } from './persistence/cipher.ts';
export { type OpenStoreOptions, openStore, StoreOpenError } from './persistence/open-store.ts';
export { type RevisionChange, watchRevision } from './persistence/revision-watch.ts';
export type { Store } from './persistence/store.ts';
export type { ReaperPipeOptions } from './programs/reaper-pipe.ts';
export type { McpEndpoint, McpRequest, ReplyWriter } from './protocol/endpoint-types.ts';
export type { DatabaseState } from './registry/database-status.ts';
export type { ViewCondition } from './registry/kinds/view-registry.ts';
export type {
  FileContents,
  RegisterOptions,
  Registration,
} from './registry/registry-types.ts';
export type { ProtectedPath } from './templates/command-exposure.ts';
export type { TemplateRules } from './templates/definition.ts';
export type { InProcessHandler } from './transports/open-options.ts';
