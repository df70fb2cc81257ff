// The answers of the gateway, as far as the console reads them. The API description (/openapi.json) has all fields.

export type Scope = 'gateway:read' | 'gateway:write' | 'tools:call' | 'admin';

export interface Account {
  readonly id: string;
  readonly kind: 'anonymous' | 'user' | 'api-key';
  readonly name: string;
  readonly user_id: string | null;
  readonly scopes: readonly Scope[];
}

type InstanceState = 'starting' | 'healthy' | 'unhealthy' | 'draining' | 'stopped';

interface Ejection {
  readonly reason: string;
  readonly until: string;
}

/** A record of GET /gateway/registry. */
export interface Instance {
  readonly id: string;
  readonly server_id: string;
  readonly template_name: string;
  readonly transport: string;
  readonly endpoint: string | null;
  readonly command: string | null;
  readonly args: readonly string[];
  readonly working_dir: string | null;
  /** The container in which its command runs. */
  readonly container?: string;
  readonly force?: boolean;
  readonly era?: string;
  /** Names only: the values are masked. */
  readonly env_vars: Readonly<Record<string, string>>;
  /** Names of variables that are secret whatever they are called. */
  readonly secret_env_vars?: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** Present when its server wants an account: one of each user, or one for all. */
  readonly auth?: {
    readonly who: 'user' | 'shared';
    readonly client_id?: string;
    /** Masked. */
    readonly client_secret?: string;
    readonly scopes?: readonly string[];
  };
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly weight: number;
  readonly source: string;
  readonly node_id: string | null;
  /** The node that runs the program, for a program that any node may run. */
  readonly running_on?: string | null;
  readonly healthy: boolean;
  readonly state: InstanceState;
  readonly in_flight: number;
  readonly sessions: number;
  readonly own_processes: number;
  readonly pid: number | null;
  readonly reason: string | null;
  readonly warnings: readonly string[];
  readonly ejection: Ejection | null;
  readonly restarts: number;
  readonly stderr: readonly string[];
  readonly created_at: string;
  readonly updated_at: string;
  readonly last_check: string | null;
}

/** A record of GET /gateway/nodes. */
export interface GatewayNode {
  readonly id: string;
  readonly life: string;
  readonly address: string | null;
  readonly version: string;
  readonly since: string;
  readonly programs: number;
  readonly in_flight: number;
  readonly draining: boolean;
  readonly state: 'live' | 'slow' | 'silent' | 'ended' | 'foreign';
}

export interface NodesAnswer {
  readonly nodes: readonly GatewayNode[];
  /** One line for each difference between nodes that should be equal. */
  readonly warnings?: readonly string[];
  readonly partial?: readonly string[];
}

/** The settings in force, by name: GET gateway/template-settings describes them. */
export type LoadBalancer = Readonly<Record<string, unknown>>;

/** An item that the lists of all templates leave out. */
export interface Withheld {
  readonly list: string;
  readonly name: string;
  readonly reason: string;
}

export interface RegistryAnswer {
  /** Nodes that did not answer. */
  readonly partial?: readonly string[];
  readonly templates: Readonly<
    Record<
      string,
      {
        readonly instances: readonly Instance[];
        readonly load_balancer: LoadBalancer;
        readonly withheld?: readonly Withheld[];
      }
    >
  >;
}

/** The event `gateway.sampled`: once a second, the counts of the interval, and the changed states. */
export interface Sample extends HistoryPoint {
  readonly templates: readonly TemplateSample[];
  readonly instances: readonly InstanceSample[];
}

/** The counts of an interval that ends at `at`. */
export interface HistoryPoint {
  readonly at: string;
  readonly interval_ms: number;
  readonly totals: {
    readonly requests: number;
    readonly failures: number;
    readonly in_flight: number;
    readonly queued: number;
    readonly sessions?: number;
    readonly p50_ms: number | null;
    readonly p95_ms: number | null;
    readonly p99_ms: number | null;
  };
}

export interface TemplateSample {
  readonly template: string;
  readonly requests: number;
  readonly failures: number;
  readonly in_flight: number;
  readonly queued: number;
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
}

export interface InstanceSample {
  readonly server_id: string;
  readonly template: string;
  readonly instance_id: string;
  readonly state: InstanceState;
  readonly in_flight: number;
  readonly requests: number;
  readonly failures: number;
  readonly latency_ms: number | null;
  readonly score: number;
  readonly weight: number;
  readonly ejected: boolean;
  readonly restarts: number;
  readonly consecutive_failures: number;
}

/** Any event of GET /events. */
export interface GatewayEvent {
  readonly type: string;
  readonly at: string;
  /** The id of the node of the event, if the console asks another node. */
  readonly node?: string;
  readonly [field: string]: unknown;
}
