// Calls of clients without a session, on instances of either era. stateless-route.ts chooses the instance and how a call travels
// there; queueing, counting, failover and timeouts are in calls/call.ts.

import type { Observable } from 'rxjs';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import type { Dispatcher } from '../calls/dispatcher.ts';
import type { Fleet } from '../fleet.ts';
import { EqualToolLists } from './equal-tool-lists.ts';
import type { StatelessClient } from './stateless-pool.ts';
import { StatelessRoute, type StatelessRouteDeps } from './stateless-route.ts';

export interface StatelessClientsDeps extends Omit<StatelessRouteDeps, 'equalToolLists'> {
  readonly fleet: Pick<Fleet, 'existingGroup' | 'get'>;
  readonly dispatcher: Pick<Dispatcher, 'carry'>;
}

export interface StatelessOptions extends StatelessClient {
  /** Only this instance may answer, even drained or unhealthy: the request continues something there. */
  readonly instanceId?: string | undefined;
}

export class StatelessClients {
  readonly #deps: StatelessClientsDeps & StatelessRouteDeps;

  constructor(deps: StatelessClientsDeps) {
    this.#deps = { ...deps, equalToolLists: new EqualToolLists() };
  }

  /**
   * One request. Cold; unsubscribing cancels it on the backend. Emits, errors and fails over like Dispatcher.exchange, but does
   * not look up tools; QUEUE_FULL also when an instance can have no more conversations. A legacy backend may send its client
   * requests (`request` events), as far as the profile declares support.
   */
  exchange(template: string, request: ExchangeRequest, client: StatelessOptions): Observable<Answer> {
    const { fleet, dispatcher, now } = this.#deps;
    return dispatcher.carry(template, request, () => {
      const { instanceId } = client;
      const group = fleet.existingGroup(template);
      const bound = instanceId === undefined ? undefined : fleet.get(template, instanceId);
      const timeoutMs = group.policy.callTimeoutMs;
      const endsAtMs = (request.cameAtMs ?? now()) + timeoutMs;
      const route = new StatelessRoute(this.#deps, { client, group, request, bound, endsAtMs });
      return { group, request, route, wantedTool: undefined, timeoutMs };
    });
  }
}
