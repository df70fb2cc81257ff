// The status of a gateway: its instances, the health of its templates, its counts. Read only.

import { filter, map, type Observable, startWith } from 'rxjs';
import { isolateListeners } from '../actors/event-bus.ts';
import type { Fleet } from '../actors/fleet.ts';
import type { Member, MemberView } from '../actors/group.ts';
import { Metrics, sumOf } from '../actors/metrics.ts';
import type { GatewayEvent } from '../domain/events.ts';
import type { InstanceSnapshot } from '../domain/instance.ts';
import type { GatewayStats, Server, TemplateHealth, TemplateSnapshot } from '../gateway-types.ts';
import type { TemplateRules } from '../templates/definition.ts';
import { uncheckedRequirements } from '../templates/requirements.ts';
import type { Mcp } from './mcp.ts';

export interface StatusDeps {
  readonly fleet: Pick<Fleet, 'group' | 'has' | 'inFlight' | 'templates'>;
  readonly mcp: Pick<Mcp, 'maxSessions'>;
  readonly definitions?: ReadonlyMap<string, TemplateRules>;
  readonly events$: Observable<GatewayEvent>;
}

export class Status {
  readonly #deps: StatusDeps;
  readonly metrics: Metrics;

  constructor(deps: StatusDeps) {
    this.#deps = deps;
    this.metrics = new Metrics(deps.events$, (template) => deps.fleet.has(template));
  }

  server(member: Member): Server {
    return this.#withClients(this.#deps.fleet.group(member.template).view(member));
  }

  servers(): Server[] {
    const { templates } = this.#deps.fleet;
    const views = templates.flatMap((template) => this.#deps.fleet.group(template).views());
    return views.map((view) => this.#withClients(view));
  }

  /** Draining and stopped instances are listed, but not counted. TEMPLATE_NOT_FOUND. */
  health(template: string): TemplateHealth {
    const { strategy } = this.#deps.fleet.group(template).policy;
    const instances = this.#snapshots(template);
    const counted = instances.filter(({ state }) => state !== 'draining' && state !== 'stopped');
    const total = counted.length;
    const healthy = counted.filter((snapshot) => snapshot.healthy).length;
    const healthPercentage = total === 0 ? 0 : Math.round((healthy / total) * 1000) / 10;
    return { template, strategy, instances, total, healthy, healthPercentage };
  }

  /** Cold: the health now, and after each change of an instance of the template. TEMPLATE_NOT_FOUND. */
  health$(template: string): Observable<TemplateHealth> {
    const { events$ } = this.#deps;
    const isChange = (event: GatewayEvent): boolean =>
      event.type.startsWith('instance.') && 'template' in event && event.template === template;
    const changes$ = events$.pipe(filter(isChange), startWith(undefined));
    return isolateListeners(changes$.pipe(map(() => this.health(template))));
  }

  stats(): GatewayStats {
    const { fleet, mcp } = this.#deps;
    const clients = { maxSessions: mcp.maxSessions, templates: this.metrics.clients() };
    return { ...this.metrics.summary(), activeConnections: fleet.inFlight, clients };
  }

  snapshot(): TemplateSnapshot[] {
    const { fleet } = this.#deps;
    const clients = this.metrics.clients();
    return fleet.templates.map((template) => ({
      template,
      queued: fleet.group(template).queue.length,
      clients: clients.get(template) ?? sumOf([]),
      instances: this.#snapshots(template),
    }));
  }

  #withClients(view: MemberView): Server {
    const { template, serverId, command } = view.definition;
    const { requires = [] } = this.#deps.definitions?.get(template) ?? {};
    const warnings = command === undefined ? [] : uncheckedRequirements(requires);
    return { ...view, warnings, clients: this.metrics.clientsAt(serverId) };
  }

  #snapshots(template: string): InstanceSnapshot[] {
    return this.#deps.fleet
      .group(template)
      .views()
      .map(({ snapshot }) => snapshot);
  }
}
