// The store without a database; its contents end with the process.

import { isDeepStrictEqual } from 'node:util';
import {
  type AuditEntry,
  callsOfBlock,
  isMatch,
  mostExpired,
  newestFirst,
} from '../../domain/events/audit-entries.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { RELEASED } from '../../domain/nodes/life.ts';
import { DAY_MS } from '../../domain/time/clock.ts';
import { type NewApproval, withDigests } from '../../domain/views/approval.ts';
import type { StoredView } from '../../domain/views/view.ts';
import type { OAuthRow, OAuthStore } from '../oauth-store.ts';
import {
  type ApprovalStore,
  type AuditStore,
  type DefinitionStore,
  type InstanceStore,
  type ListStore,
  MAX_LIST_DAYS,
  MAX_STORED_LISTS,
  type NodeStore,
  type ProgramStore,
  type RekeyResult,
  type SessionStore,
  type SettingStore,
  type Store,
  type StoredDefinition,
  type StoredLife,
  type StoredList,
  type StoredProgram,
  type StoredSession,
  type TemplateStore,
  VIEWS,
  type ViewStore,
} from '../store.ts';
import { MemoryAccounts } from './memory-accounts.ts';
import { entryKey, memoryInstances, memoryTemplates } from './memory-instances.ts';
import { memoryOAuth } from './memory-oauth.ts';

/**
 * A Store in memory. It stores and returns copies, so that no caller changes a stored value by accident.
 * spec/conformance has the shared suite of both stores.
 */
export class MemoryStore implements Store {
  readonly kind = 'memory';
  #revision = 0;
  readonly #tombstones = new Map<string, string>();
  readonly #instances = new Map<string, InstanceDefinition>();
  readonly templates: TemplateStore = memoryTemplates(this.#instances, () => this.#changed());
  readonly instances: InstanceStore = memoryInstances(this.#instances, this.#tombstones, (count) =>
    this.#changed(count),
  );
  readonly #oauthRows = new Map<string, OAuthRow>();
  readonly oauth: OAuthStore = memoryOAuth(this.#oauthRows, () => this.#changed());
  readonly accounts = new MemoryAccounts(() => this.#changed(), this.#oauthRows);
  readonly settings: SettingStore = memorySettings();
  readonly audit: AuditStore = memoryAudit();
  readonly #sessionRows = new Map<string, StoredSession>();
  readonly sessions: SessionStore = memorySessions(this.#sessionRows);
  readonly nodes: NodeStore = memoryNodes(this.#sessionRows);
  readonly programs: ProgramStore = memoryPrograms();
  readonly lists: ListStore = memoryLists();
  readonly definitions: DefinitionStore = memoryDefinitions(() => this.#changed());
  readonly approvals: ApprovalStore = memoryApprovals(() => this.#changed());
  readonly views: ViewStore = memoryViews(
    () => this.#changed(),
    (id, fingerprint) => {
      const key = entryKey(VIEWS, id);
      if (fingerprint === undefined) this.#tombstones.delete(key);
      else this.#tombstones.set(key, fingerprint);
    },
  );

  async revision(): Promise<number> {
    return this.#revision;
  }

  async rekey(): Promise<RekeyResult> {
    return { done: 0, current: 0, unreadable: 0, reasons: [] };
  }

  async serverTimeMs(): Promise<undefined> {}

  async ping(): Promise<void> {}

  finishWithin(): void {}

  async close(): Promise<void> {}

  #changed(count = 1): number {
    this.#revision += count;
    return this.#revision;
  }
}

function memoryDefinitions(changed: () => number): DefinitionStore {
  const stored = new Map<string, StoredDefinition>();
  return {
    list: async () => copiesOf(stored),
    save: async (definition) => {
      stored.set(definition.id, structuredClone(definition));
      return changed();
    },
    delete: async (id) => (stored.delete(id) ? changed() : undefined),
  };
}

function memorySettings(): SettingStore {
  const values = new Map<string, string>();
  return {
    read: async (name) => values.get(name),
    exchange: async (name, before, after) => {
      if (values.get(name) !== before) return false;
      if (after === undefined) values.delete(name);
      else values.set(name, after);
      return true;
    },
    touch: async () => {},
  };
}

function memoryAudit(): AuditStore {
  let changes: AuditEntry[] = [];
  let calls: AuditEntry[] = [];
  const newest = (entries: readonly AuditEntry[], most: number, from = '') =>
    entries
      .filter(({ id }) => id >= from)
      .toSorted(newestFirst)
      .slice(0, most);
  /** The entries that have not expired, of a list that is newest first. */
  const unexpired = (entries: AuditEntry[], from = '') => {
    const fresh = entries.filter(({ id }) => id >= from).length;
    return entries.slice(0, Math.max(fresh, entries.length - mostExpired(entries.length)));
  };
  return {
    append: async (added) => {
      changes.push(...added.map(copyOf));
    },
    appendCalls: async (block) => {
      calls.push(...callsOfBlock(block));
    },
    list: ({ limit, before, from, ...filter }, inTurn = (part) => part()) => {
      const isOnPage = (entry: AuditEntry) =>
        (before === undefined || entry.id < before) && isMatch(entry, filter);
      return inTurn(async () => newest([...changes, ...calls].filter(isOnPage), limit, from).map(copyOf));
    },
    trim: async (bounds) => {
      changes = unexpired(newest(changes, bounds.changes), bounds.from);
      calls = unexpired(newest(calls, bounds.calls), bounds.from);
    },
  };
}

/** The sessions of the store, for specs: a gateway with this store keeps no sessions, since nothing would outlive it. */
function memorySessions(rows: Map<string, StoredSession>): SessionStore {
  const stored = (keys: readonly string[]) => keys.flatMap((key) => rows.get(key) ?? []);
  const holdersOf = (keys: readonly string[]) => new Map(stored(keys).map(({ key, life }) => [key, life]));
  return {
    insert: async (added) => {
      for (const row of added) if (!rows.has(row.key)) rows.set(row.key, { ...row });
    },
    update: async (life, changes) => {
      for (const { key, value, usedAt } of changes) {
        const row = rows.get(key);
        if (row?.life === life) rows.set(key, { ...row, value, usedAt });
      }
      return holdersOf(changes.map(({ key }) => key));
    },
    read: async (keys) => stored(keys),
    claim: async (read, { node, life }) => {
      for (const { key, life: from, generation } of read) {
        const row = rows.get(key);
        if (row?.life === from && row.generation === generation)
          rows.set(key, { ...row, node, life, generation: generation + 1 });
      }
      return stored(read.map(({ key }) => key)).filter((row) => row.life === life);
    },
    delete: async (life, keys) => {
      for (const { key, life: holder } of stored(keys)) if (holder === life) rows.delete(key);
    },
    trim: async ({ node, life }, keep) => {
      const others = [...rows.values()].filter((row) => row.node === node && row.life !== life);
      const old = others.toSorted((a, b) => (a.usedAt < b.usedAt ? 1 : -1)).slice(keep);
      for (const { key } of old) rows.delete(key);
      return old.length;
    },
  };
}

/** The nodes of the store, for specs: no other node reaches this store. */
function memoryNodes(sessions: Map<string, StoredSession>): NodeStore {
  const rows = new Map<string, StoredLife>();
  const change = (row: StoredLife | undefined, changes: Partial<StoredLife>): boolean => {
    if (row !== undefined) rows.set(row.life, { ...row, ...changes });
    return row !== undefined;
  };
  const found = (life: string, mayBe: (row: StoredLife) => boolean): StoredLife | undefined => {
    const row = rows.get(life);
    return row !== undefined && mayBe(row) ? row : undefined;
  };
  return {
    list: async () => [...rows.values()],
    insert: async (row) => {
      if (!rows.has(row.life)) rows.set(row.life, { ...row });
    },
    beat: async (life, state) => {
      const row = found(life, ({ end }) => end === undefined);
      return change(row, { state, counter: (row?.counter ?? 0) + 1 });
    },
    end: async (life, counter, next) => {
      const row = found(
        life,
        ({ end, counter: present }) =>
          (counter === undefined || counter === present) &&
          (end === undefined || (end.frees === 'sessions' && next.frees === 'all')),
      );
      return change(row, { end: next });
    },
    delete: async (lives) => {
      const old = lives.flatMap((life) => found(life, ({ end }) => end?.frees === 'all') ?? []);
      for (const { life } of old) rows.delete(life);
      const left = new Set(Array.from(rows.values(), ({ node }) => node));
      const isOld = ({ life, node }: StoredSession) =>
        old.some((one) => one.life === life || (life === RELEASED && one.node === node && !left.has(node)));
      for (const session of sessions.values()) if (isOld(session)) sessions.delete(session.key);
    },
  };
}

function memoryPrograms(): ProgramStore {
  const rows = new Map<string, StoredProgram>();
  const isAsRead = ({ program, life, generation }: StoredProgram): boolean => {
    const row = rows.get(program);
    return row?.life === life && row?.generation === generation;
  };
  return {
    list: async () => [...rows.values()],
    take: async (program, generation, life) => {
      const row = rows.get(program);
      if ((row?.generation ?? 0) !== generation) return false;
      rows.set(program, { program, life, generation: generation + 1, marks: row?.marks ?? '' });
      return true;
    },
    release: async (lease) => {
      if (!isAsRead(lease)) return false;
      rows.set(lease.program, { ...lease, life: undefined });
      return true;
    },
    delete: async (read) => {
      for (const row of read) if (isAsRead(row)) rows.delete(row.program);
    },
  };
}

/** Copies an entry of texts and numbers without structuredClone, because this runs once per call. */
function copyOf(entry: AuditEntry): AuditEntry {
  return entry.call === undefined ? { ...entry } : { ...entry, call: { ...entry.call } };
}

function copiesOf<T>(values: ReadonlyMap<string, T>): T[] {
  return structuredClone([...values.values()]);
}

/** The last read lists of servers. */
function memoryLists(): ListStore {
  const rows = new Map<string, StoredList>();
  return {
    find: async (key) => rows.get(key),
    save: async (list) => {
      rows.set(list.key, list);
      const oldest = new Date(Date.parse(list.readAt) - MAX_LIST_DAYS * DAY_MS).toISOString();
      const newest = [...rows.values()]
        .filter(({ template }) => template === list.template)
        .toSorted((a, b) => b.readAt.localeCompare(a.readAt) || a.key.localeCompare(b.key));
      const surplus = new Set(newest.slice(MAX_STORED_LISTS));
      for (const [key, row] of rows) if (row.readAt < oldest || surplus.has(row)) rows.delete(key);
    },
  };
}

/** The store of approvals. `changed` counts a change of the registry, and gives its revision. */
function memoryApprovals(changed: () => number): ApprovalStore {
  const rows = new Map<string, NewApproval>();
  const rowsOf = (scope: string) => [...rows].filter(([, row]) => row.scope === scope);
  return {
    list: async () =>
      [...rows.values()].map(({ scope, tool, digests }) => ({ scope, tool, digests: [...digests] })),
    definitionsOf: async (scope) =>
      new Map(rowsOf(scope).map(([, { tool, definition }]) => [tool, structuredClone(definition)])),
    save: async (saved) => {
      for (const approval of saved) {
        const key = `${approval.scope}\0${approval.tool}`;
        const digests = withDigests(rows.get(key)?.digests ?? [], approval.digests);
        rows.set(key, { ...structuredClone(approval), digests });
      }
      return changed();
    },
    deleteOf: async (scope) => {
      const found = rowsOf(scope);
      for (const [key] of found) rows.delete(key);
      return found.length === 0 ? undefined : changed();
    },
  };
}

/**
 * The store of views. `changed`: notes a change of the revision, and gives the new one. `setTombstone`: of a view;
 * undefined deletes it.
 */
function memoryViews(
  changed: () => number,
  setTombstone: (id: string, fingerprint: string | undefined) => void,
): ViewStore {
  const views = new Map<string, StoredView>();
  return {
    list: async () => [...views.values()].map((view) => structuredClone(view)),
    save: async (view, before) => {
      const { id } = view.definition;
      if (!isDeepStrictEqual(views.get(id) ?? null, before)) return undefined;
      views.set(id, structuredClone(view));
      setTombstone(id, undefined);
      return changed();
    },
    delete: async (view, fingerprint) => {
      const { id } = view.definition;
      if (!isDeepStrictEqual(views.get(id), view)) return undefined;
      views.delete(id);
      setTombstone(id, fingerprint);
      return changed();
    },
  };
}
