// The workers of one gateway: processes that share its ports, and ask each other. Source: ADR 174, 175.

/** This process among the workers of its gateway. */
export interface OwnWorker {
  /** The number of the worker, from 1. */
  readonly number: number;
  readonly count: number;
  /** The gateway that this worker joins, which serves already; undefined for the first one of a start. */
  readonly gateway: ServingGateway | undefined;
  /** The folder of the socket files on which workers reach each other; undefined where there are none: by loopback. */
  readonly sockets: string | undefined;
  /** Asks all others. Without those that do not answer within a second; never rejects. */
  ask(question: WorkerQuestion): Promise<readonly string[]>;
}

/** The data that all workers of a gateway have in common. */
export interface ServingGateway {
  readonly id: string;
  /** The names of its secrets; the first one signs its tokens. */
  readonly secretIds: readonly string[];
  /** The numbers of its ports, by their label in the settings. */
  readonly ports: PortNumbers;
}

export type PortNumbers = Readonly<Partial<Record<string, number>>>;

export type WorkerQuestion =
  /** Apply the changes in the store now. The answer is empty. */
  | { readonly kind: 'changes' }
  /** Asks the worker to read which lives have ended. The answer is empty. */
  | { readonly kind: 'members' }
  /** The text of the metrics; with `templates` and `tools`, only of the templates that a caller with these lists may use. */
  | {
      readonly kind: 'metrics';
      readonly templates?: readonly string[] | undefined;
      readonly tools?: readonly (readonly string[])[] | undefined;
    };

/** The socket file of a worker. */
export function workerSocket({ sockets }: Pick<OwnWorker, 'sockets'>, number: number): string | undefined {
  return sockets === undefined ? undefined : `${sockets}/${number}`;
}
