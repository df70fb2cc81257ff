// Makes the calls of clients of the modern era, which have no sessions: each is a Call with a StatelessRoute.

import type { Observable } from 'rxjs';
import type { ExchangeRequest, SourcedEvent } from '../../../domain/calls/exchange.ts';
import type { StatelessOptions } from '../../../domain/mcp/client.ts';
import type { Clock } from '../../../domain/time/clock.ts';
import type { Fleet } from '../../fleet.ts';
import type { Dispatcher } from '../dispatcher.ts';
import { EqualToolLists } from './equal-tool-lists.ts';
import type { StatelessConversations } from './stateless-conversations.ts';
import { StatelessRoute } from './stateless-route.ts';

interface StatelessCallsDeps {
  readonly clock: Clock;
  readonly statelessConversations: StatelessConversations;
  readonly fleet: Fleet;
  readonly dispatcher: Dispatcher;
}

/** Sends the requests of clients of the modern era, which have no sessions. */
export class StatelessCalls {
  readonly #deps: StatelessCallsDeps;
  readonly #equalToolLists = new EqualToolLists();

  constructor(deps: StatelessCallsDeps) {
    this.#deps = deps;
  }

  /**
   * See Backends.exchange of protocol/endpoint-backends.ts. Failover follows call.ts, but tools are looked up only
   * where definitions need approval. Errors with QUEUE_FULL also when an instance can have no more conversations.
   * With `instanceId` only that instance may answer, even when drained or unhealthy, since the request continues
   * something there.
   */
  exchange(template: string, request: ExchangeRequest, client: StatelessOptions): Observable<SourcedEvent> {
    const { fleet, dispatcher } = this.#deps;
    return dispatcher.carry(template, request, () => {
      const { instanceId } = client;
      const group = fleet.templates.existingGroup(template);
      const bound = instanceId === undefined ? undefined : fleet.templates.group(template).ref(instanceId);
      const equalToolLists = this.#equalToolLists;
      const input = { deps: this.#deps, equalToolLists, client, group, request, bound };
      const route = new StatelessRoute(input);
      return { group, route, wantedTool: group.approvedTool(request) };
    });
  }
}
