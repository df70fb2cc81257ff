// Calls of clients without a session, on instances of either era. Which instances a call may go to, and how it travels there, is its
// route (stateless-route.ts); how it waits in the queue, is counted, fails over and times out is the call's (calls/call.ts).

import type { Observable } from 'rxjs';
import type { Answer, ExchangeRequest } from '../../domain/exchange.ts';
import type { Dispatcher } from '../calls/dispatcher.ts';
import type { Fleet } from '../fleet.ts';
import { AlikeLists } from './alike-lists.ts';
import type { StatelessClient } from './stateless-pool.ts';
import { StatelessRoute, type StatelessRouteDeps } from './stateless-route.ts';

export interface StatelessClientsDeps extends Omit<StatelessRouteDeps, 'alikeLists'> {
  readonly fleet: Pick<Fleet, 'groups' | 'get'>;
  readonly dispatcher: Pick<Dispatcher, 'carry'>;
}

export interface StatelessOptions extends StatelessClient {
  /** Only this instance may answer, drained, unhealthy or not: the request goes on with something there. */
  readonly instanceId?: string | undefined;
}

export class StatelessClients {
  readonly #deps: StatelessClientsDeps & StatelessRouteDeps;

  constructor(deps: StatelessClientsDeps) {
    this.#deps = { ...deps, alikeLists: new AlikeLists() };
  }

  /**
   * One request. Cold; unsubscribing cancels it on the backend. Emits, errors and fails over like Dispatcher.exchange, tools
   * are not looked up; QUEUE_FULL also when an instance can have no more conversations. A legacy backend may ask its client
   * (`request` events) for what the profile declares.
   */
  exchange(template: string, request: ExchangeRequest, client: StatelessOptions): Observable<Answer> {
    const { fleet, dispatcher, now } = this.#deps;
    return dispatcher.carry(template, request, () => {
      const { instanceId } = client;
      const group = fleet.groups.require(template);
      const bound = instanceId === undefined ? undefined : fleet.get(template, instanceId);
      const timeoutMs = group.policy.callTimeoutMs;
      const endsAtMs = (request.cameAtMs ?? now()) + timeoutMs;
      const route = new StatelessRoute(this.#deps, { client, group, request, bound, endsAtMs });
      return { group, request, route, wantedTool: undefined, timeoutMs };
    });
  }
}
