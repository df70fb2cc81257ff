// The status of a gateway: its instances, the health of its templates, its counts. Read only.

import { filter, map, type Observable, startWith } from 'rxjs';
import { sumOf } from '../actors/client-metrics.ts';
import { isolateListeners } from '../actors/event-stream.ts';
import type { Fleet } from '../actors/fleet.ts';
import type { Member } from '../actors/group.ts';
import { type MemberView, viewOf, viewsOf } from '../actors/member-views.ts';
import { Metrics } from '../actors/metrics.ts';
import { changesHealthOf, healthOf, type TemplateHealth } from '../actors/template-health.ts';
import type { GatewayEvent } from '../domain/events.ts';
import type { GatewayStats, Server, TemplateSnapshot } from '../gateway-types.ts';
import type { TemplateRules } from '../templates/definition.ts';
import { uncheckedRequirements } from '../templates/requirements.ts';
import type { Mcp } from './mcp.ts';

export interface StatusDeps {
  readonly fleet: Pick<Fleet, 'group' | 'inFlight' | 'members' | 'templates'>;
  readonly mcp: Pick<Mcp, 'clientsAt' | 'stats'>;
  /** By template. Default: none. */
  readonly definitions?: ReadonlyMap<string, TemplateRules>;
  /** Hot. */
  readonly events$: Observable<GatewayEvent>;
}

/** Counts until `close`. */
export class Status {
  readonly #deps: StatusDeps;
  readonly #metrics: Metrics;

  constructor(deps: StatusDeps) {
    this.#deps = deps;
    this.#metrics = new Metrics(deps.events$);
  }

  server(member: Member): Server {
    return this.#withClients(viewOf(member, this.#deps.fleet.group(member.template)));
  }

  /** All of them, template by template. */
  servers(): Server[] {
    const { templates } = this.#deps.fleet;
    return templates.flatMap((template) => this.#views(template)).map((view) => this.#withClients(view));
  }

  /** TEMPLATE_NOT_FOUND. */
  health(template: string): TemplateHealth {
    const { policy } = this.#deps.fleet.group(template);
    const snapshots = this.#views(template).map(({ snapshot }) => snapshot);
    return healthOf(template, policy.strategy, snapshots);
  }

  /** Cold: the health now, and after each change of an instance of the template. TEMPLATE_NOT_FOUND. */
  health$(template: string): Observable<TemplateHealth> {
    const { events$ } = this.#deps;
    const changes$ = events$.pipe(filter(changesHealthOf(template)), startWith(undefined));
    return isolateListeners(changes$.pipe(map(() => this.health(template))));
  }

  stats(): GatewayStats {
    const { fleet, mcp } = this.#deps;
    return { ...this.#metrics.summary(), activeConnections: fleet.inFlight, clients: mcp.stats };
  }

  /** Of every template. */
  snapshot(): TemplateSnapshot[] {
    const { fleet, mcp } = this.#deps;
    const clients = mcp.stats.templates;
    return fleet.templates.map((template) => ({
      template,
      queued: fleet.group(template).queue.length,
      clients: clients.get(template) ?? sumOf([]),
      instances: this.#views(template).map(({ snapshot }) => snapshot),
    }));
  }

  close(): void {
    this.#metrics.close();
  }

  #withClients(view: MemberView): Server {
    const { template, serverId, command } = view.definition;
    const { requires = [] } = this.#deps.definitions?.get(template) ?? {};
    const warnings = command === undefined ? [] : uncheckedRequirements(requires);
    return { ...view, warnings, clients: this.#deps.mcp.clientsAt(serverId) };
  }

  #views(template: string): MemberView[] {
    const { fleet } = this.#deps;
    return viewsOf(fleet.members(template), fleet.group(template));
  }
}
