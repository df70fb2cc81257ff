// What the disturbance of a fault gets: the deployment that it disturbs, and where it notes what it measured.

import type { Deployment, Node } from './deployment.ts';

import type { IdleLoad, NodeLoad } from './herd-verdicts.ts';
import type { Herds } from './herds.ts';

export interface Run {
  readonly deployment: Deployment;
  /** The node that runs the program which any node may run. */
  readonly runner: () => Node | undefined;
  readonly random: () => number;
  readonly seconds: number;
  /** Undefined without a herd. */
  readonly herd: Herds | undefined;
  readonly load: NodeLoad[];
  readonly idle: IdleLoad[];
  /** A folder for profiles of the nodes, which were started with PROFILED. */
  readonly profiles: string | undefined;
}
