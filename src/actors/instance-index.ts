// The registered instances, by template and by server id: those that run here and those that another node runs. It neither
// starts nor ends instances (fleet.ts).

import { serverNotFound, templateNotFound } from '../domain/error-catalogue.ts';
import type { ForeignInstance } from './foreign-instance.ts';
import type { InstanceRef } from './instances/instance-ref.ts';

/** An instance in the lists. */
export type Member = InstanceRef | ForeignInstance;

export class InstanceIndex {
  readonly #byTemplate = new Map<string, Map<string, Member>>();
  readonly #byServerId = new Map<string, Member>();

  /** How many there are, of all templates. */
  get size(): number {
    return this.#byServerId.size;
  }

  /** Makes room for a template, once. */
  open(template: string): void {
    this.#byTemplate.set(template, new Map());
  }

  /** Adds it as the last of its template. TEMPLATE_NOT_FOUND. An instance that had the id is to be dropped before. */
  put(member: Member): void {
    this.#membersOf(member.template).set(member.id, member);
    this.#byServerId.set(member.serverId, member);
  }

  /** TEMPLATE_NOT_FOUND. */
  drop(member: Member): void {
    this.#membersOf(member.template).delete(member.id);
    // The server id may belong to another instance by now: two nodes may have swapped two instances in one go.
    if (this.#byServerId.get(member.serverId) === member) this.#byServerId.delete(member.serverId);
  }

  find(template: string, id: string): Member | undefined {
    return this.#byTemplate.get(template)?.get(id);
  }

  /** TEMPLATE_NOT_FOUND, SERVER_NOT_FOUND. */
  get(template: string, id: string): Member {
    const member = this.#membersOf(template).get(id);
    if (member === undefined) throw serverNotFound(id);
    return member;
  }

  /** SERVER_NOT_FOUND. */
  byServerId(serverId: string): Member {
    const member = this.#byServerId.get(serverId);
    if (member === undefined) throw serverNotFound(serverId);
    return member;
  }

  isServerIdTaken(serverId: string): boolean {
    return this.#byServerId.has(serverId);
  }

  /** In the order of their registration. TEMPLATE_NOT_FOUND. */
  members(template: string): Member[] {
    return [...this.#membersOf(template).values()];
  }

  #membersOf(template: string): Map<string, Member> {
    const members = this.#byTemplate.get(template);
    if (members === undefined) throw templateNotFound(template);
    return members;
  }
}
