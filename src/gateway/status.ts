// What is true of a gateway now: its instances, the health of its templates, the numbers. It changes nothing.

import { filter, map, type Observable, startWith } from 'rxjs';
import { guarded } from '../actors/event-stream.ts';
import type { Fleet } from '../actors/fleet.ts';
import { type MemberView, viewOf, viewsOf } from '../actors/member-views.ts';
import { Metrics } from '../actors/metrics.ts';
import type { Member } from '../actors/roster.ts';
import { changesHealthOf, healthOf, type TemplateHealth } from '../actors/template-health.ts';
import type { GatewayEvent } from '../domain/events.ts';
import type { GatewayStats, Server } from '../gateway-types.ts';
import type { Mcp } from './mcp.ts';

/** What it looks at. */
export interface StatusParts {
  readonly fleet: Pick<Fleet, 'group' | 'inFlight' | 'members' | 'templates'>;
  readonly mcp: Pick<Mcp, 'clientsAt' | 'stats'>;
  /** The facts of the gateway. Hot. */
  readonly events$: Observable<GatewayEvent>;
}

/** Counts from its making to `close`. */
export class Status {
  readonly #parts: StatusParts;
  readonly #metrics: Metrics;

  constructor(parts: StatusParts) {
    this.#parts = parts;
    this.#metrics = new Metrics(parts.events$);
  }

  server(member: Member): Server {
    const { fleet, mcp } = this.#parts;
    return { ...viewOf(member, fleet.group(member.template)), clients: mcp.clientsAt(member.serverId) };
  }

  /** All of them, template by template. */
  servers(): Server[] {
    const { fleet, mcp } = this.#parts;
    const views = fleet.templates.flatMap((template) => this.#views(template));
    return views.map((view) => ({ ...view, clients: mcp.clientsAt(view.definition.serverId) }));
  }

  /** TEMPLATE_NOT_FOUND. */
  health(template: string): TemplateHealth {
    const { policy } = this.#parts.fleet.group(template);
    const snapshots = this.#views(template).map(({ snapshot }) => snapshot);
    return healthOf(template, policy.strategy, snapshots);
  }

  /** Cold: now, and again whenever one of its instances changes. TEMPLATE_NOT_FOUND. */
  health$(template: string): Observable<TemplateHealth> {
    const { events$ } = this.#parts;
    const changes$ = events$.pipe(filter(changesHealthOf(template)), startWith(undefined));
    return guarded(changes$.pipe(map(() => this.health(template))));
  }

  stats(): GatewayStats {
    const { fleet, mcp } = this.#parts;
    return { ...this.#metrics.summary(), activeConnections: fleet.inFlight, clients: mcp.stats };
  }

  close(): void {
    this.#metrics.close();
  }

  #views(template: string): MemberView[] {
    const { fleet } = this.#parts;
    return viewsOf(fleet.members(template), fleet.group(template));
  }
}
