// The interface of a store, in domain types: the registry with views and definitions, the accounts and the authorization server,
// a few settings, the audit log, and what nodes share: their lives, leases of programs, sessions, lists. Health is never stored.

import type { StoredTemplate, TemplateChange } from '../balancing/stored-template.ts';
import type {
  ApiKey,
  ApiKeyChange,
  CreatedId,
  EndedToken,
  User,
  UserChange,
} from '../domain/accounts/account.ts';
import type { AuditEntry, AuditFilter, CallBlock } from '../domain/events/audit-entries.ts';
import type { InstanceDefinition } from '../domain/instances/instance.ts';
import type { JsonObject } from '../domain/json/json.ts';
import type { LifeEnd } from '../domain/nodes/life.ts';
import type { NodeLife } from '../domain/nodes/nodes.ts';
import type { Approval, NewApproval } from '../domain/views/approval.ts';
import type { StoredView } from '../domain/views/view.ts';
import type { OAuthRow, OAuthStore } from './oauth-store.ts';

/**
 * All stored data. Every method rejects with DATABASE_UNAVAILABLE within a bounded time when its database does not
 * answer; `delivered` tells whether a change may have been made. Changes of the registry resolve with the revision
 * that they made.
 */
export interface Store {
  /** The kind: `memory` or the name of the database. */
  readonly kind: string;
  /** The absolute path of its file; undefined for a server and for memory. */
  readonly file?: string | undefined;
  readonly templates: TemplateStore;
  readonly instances: InstanceStore;
  readonly accounts: AccountStore;
  readonly settings: SettingStore;
  readonly audit: AuditStore;
  readonly sessions: SessionStore;
  readonly nodes: NodeStore;
  readonly programs: ProgramStore;
  readonly oauth: OAuthStore;
  readonly lists: ListStore;
  readonly definitions: DefinitionStore;
  readonly approvals: ApprovalStore;
  readonly views: ViewStore;
  /** The revision: it changes with each change of the registry or the accounts on any node, and only then. */
  revision(): Promise<number>;
  /**
   * Encrypts the texts again, with the present key, that another key or none encrypted. Other processes may use the
   * database meanwhile: a row is locked while it is changed, and its content of that moment is kept. May be repeated
   * after a failure. `onProgress` gets the number of texts that were seen so far. Throws CONFIG_INCOMPLETE
   * without a cipher.
   */
  rekey(onProgress?: (texts: number) => void): Promise<RekeyResult>;
  /**
   * The time by the clock of a database server, in ms since 1970; undefined for a file and for memory, which have no
   * own clock.
   */
  serverTimeMs(): Promise<number | undefined>;
  /** Resolves when the store answers and, if it was unavailable for the last change, accepts changes again. */
  ping(): Promise<void>;
  /** Gives all operations so much time together from now on, also those under way: then they reject with DATABASE_UNAVAILABLE. */
  finishWithin(withinMs: number): void;
  close(): Promise<void>;
}

/** The settings of templates. Each change is one of the revision. */
export interface TemplateStore {
  /** The settings of all templates, in the order of their first save. */
  list(): Promise<StoredTemplate[]>;
  /** Merges the settings into those of the template, which it creates if there is none. One transaction. */
  save(change: TemplateChange): Promise<number>;
  /** Deletes the settings of a template. Undefined when there was no such template, or it has instances. */
  delete(name: string): Promise<number | undefined>;
}

/** The definitions of instances. Each change is one of the revision. */
export interface InstanceStore {
  /**
   * All instances, in the order of their first save. An instance whose secrets cannot be decrypted is given without
   * them, with the reason in `locked`.
   */
  list(): Promise<InstanceDefinition[]>;
  /**
   * Inserts or replaces by template and id, and deletes its tombstone; resolves when it is durable. Throws DUPLICATE_SERVER when
   * another instance has its server id, CONFIG_INCOMPLETE when it is locked, or has secrets and there is no cipher. Changes
   * nothing and resolves with undefined when the stored instance is not `before`; null: there must be none. Default: any, or
   * none.
   */
  save(definition: InstanceDefinition, before?: InstanceDefinition | null): Promise<number | undefined>;
  /** Saves several instances, each as in `save`, in one transaction: all are saved, or none. */
  saveMany(saves: readonly InstanceSave[]): Promise<number | undefined>;
  /**
   * Deletes an instance. Undefined when there was none. `fingerprint`: that of an entry of a file or of sync, which
   * leaves a tombstone.
   */
  delete(template: string, id: string, fingerprint?: string): Promise<number | undefined>;
  /**
   * Deletes several instances, without tombstones. Changes nothing and resolves with undefined when one of them is not there, or
   * has another source. At most MAX_ROWS ids.
   */
  deleteMany(
    template: string,
    ids: readonly string[],
    source: InstanceDefinition['source'],
  ): Promise<number | undefined>;
  /**
   * The fingerprints, by id, of entries that were deleted through the API and stay so until they change. At most
   * MAX_ROWS ids.
   */
  findTombstones(template: string, ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** The views, in the order of their creation. Each change is one of the revision. */
export interface ViewStore {
  list(): Promise<StoredView[]>;
  /**
   * Inserts or replaces by id, and deletes its tombstone. Changes nothing and resolves with undefined when the stored view is not
   * `before`; null: there must be none.
   */
  save(view: StoredView, before: StoredView | null): Promise<number | undefined>;
  /**
   * Deletes a view. Changes nothing and resolves with undefined when it is not stored as it is here. `fingerprint`: that of an
   * entry of a file, which leaves a tombstone in VIEWS.
   */
  delete(view: StoredView, fingerprint?: string): Promise<number | undefined>;
}

/** The text in place of the template of the tombstones of views: no template has such a name. */
export const VIEWS = '/views';

/** The numbers of stored texts: an instance has up to two. */
export interface RekeyResult {
  readonly done: number;
  /** The number of texts that the present key had encrypted before. */
  readonly current: number;
  readonly unreadable: number;
  /** The lines for unreadable texts, one each, without the content; at most MAX_REKEY_REASONS. */
  readonly reasons: readonly string[];
}

export const MAX_REKEY_REASONS = 100;

export interface InstanceSave {
  readonly definition: InstanceDefinition;
  /** The expected instance: see `save`. */
  readonly before?: InstanceDefinition | null | undefined;
}

/** A template definition: the id of its template, and the document. It holds no secrets, and is not encrypted. */
export interface StoredDefinition {
  readonly id: string;
  readonly value: JsonObject;
}

/** The template definitions that were stored through the API. */
export interface DefinitionStore {
  /** All definitions, in the order of their first save. */
  list(): Promise<StoredDefinition[]>;
  /** Inserts or replaces by id. */
  save(definition: StoredDefinition): Promise<number>;
  /** Deletes a definition. Undefined when there was none. */
  delete(id: string): Promise<number | undefined>;
}

/** The most rows of one `append`, `delete` or `find`: databases limit the values in a list. */
export const MAX_ROWS = 500;

/** The definitions of tools that an admin has approved, of templates and views that are pinned. */
export interface ApprovalStore {
  /** All approvals, in no order. */
  list(): Promise<Approval[]>;
  /** The definitions of a template or a view, by tool. */
  definitionsOf(scope: string): Promise<ReadonlyMap<string, JsonObject>>;
  /**
   * Adds the digests to those that are stored of each tool, which another node may have changed, and replaces its definition.
   * Resolves with the revision: a change of the registry. At most MAX_ROWS, each of another tool.
   */
  save(approvals: readonly NewApproval[]): Promise<number>;
  /** Deletes the approvals of a template or a view. Undefined when there was none. */
  deleteOf(scope: string): Promise<number | undefined>;
}

/** The lists of templates as they were read last, so that a gateway has them before its instances are healthy. */
export interface ListStore {
  /** The list with this key. Undefined when there is none, or it cannot be decrypted. */
  find(key: string): Promise<StoredList | undefined>;
  /** Inserts or replaces a list, and drops those beyond MAX_STORED_LISTS and MAX_LIST_DAYS. Never a change of the revision. */
  save(list: StoredList): Promise<void>;
}

export interface StoredList {
  /** The key: up to 64 ASCII characters. */
  readonly key: string;
  readonly template: string;
  /** The items as text. It is encrypted in the database where there is a cipher. */
  readonly value: string;
  /** ISO 8601. */
  readonly readAt: string;
}

/** The most lists of one template. The oldest ones make room. */
export const MAX_STORED_LISTS = 32;
/** The age in days after which a list that was not saved again is dropped when another one is saved. */
export const MAX_LIST_DAYS = 30;

/** The users and API keys. User names are unique without regard to case. */
export interface AccountStore {
  /** The ids of all users, in the order of their creation. */
  userIds(): Promise<readonly CreatedId[]>;
  /** The ids of all API keys, in the order of their creation. */
  apiKeyIds(): Promise<readonly CreatedId[]>;
  /** The existing users of these ids, or all in the order of their creation. */
  findUsers(ids?: readonly string[]): Promise<User[]>;
  /** The user with this name, without regard to case. */
  findUserByName(username: string): Promise<User | undefined>;
  /** Inserts a user. Throws DUPLICATE_USERNAME. */
  insertUser(user: User): Promise<void>;
  /**
   * Inserts a user and writes a row of `oauth`, as in OAuthStore.replace, in one transaction. False, with nothing
   * changed, when the row is not of this version. Throws DUPLICATE_USERNAME.
   */
  insertUserWithIdentity(user: User, row: Omit<OAuthRow, 'version'>, version: number): Promise<boolean>;
  /**
   * Changes a user in one transaction. Increases a `credentialsChangedAt` that is not later than the previous one; with another
   * one all tokens are void, and the ended ones are forgotten. Throws USER_NOT_FOUND, and LAST_ADMIN when no active admin of all
   * templates would be left.
   */
  changeUser(id: string, change: UserChange): Promise<User>;
  /**
   * Deletes a user in one transaction, together with the user's API keys and rows of `oauth`. Throws
   * USER_NOT_FOUND and LAST_ADMIN.
   */
  deleteUser(id: string): Promise<void>;
  /**
   * Records an ended token of a user in one transaction, and drops expired ones if there is no room. Changes nothing
   * and resolves with false when there is no room then. Throws USER_NOT_FOUND.
   */
  endToken(userId: string, token: EndedToken, nowMs: number): Promise<boolean>;
  /** True while a token of a user is recorded as ended. */
  isTokenEnded(userId: string, tokenId: string): Promise<boolean>;
  /** The existing API keys of these ids, or all in the order of their creation. */
  findApiKeys(ids?: readonly string[]): Promise<ApiKey[]>;
  /** Inserts a key in one transaction. Throws USER_NOT_FOUND when its owner does not exist. */
  insertApiKey(key: ApiKey): Promise<void>;
  /** Changes a key in one transaction. Undefined when there is none. */
  changeApiKey(id: string, change: ApiKeyChange): Promise<ApiKey | undefined>;
  /** Deletes a key. False when there was none. */
  deleteApiKey(id: string): Promise<boolean>;
  /** Sets `lastUsedAt` (ISO 8601) by key id; unknown ids are ignored. Not a change of the revision. */
  touchApiKeys(lastUsedAt: ReadonlyMap<string, string>): Promise<void>;
}

/** The values that all nodes share, such as the signing secret of a server database. */
export interface SettingStore {
  read(name: string): Promise<string | undefined>;
  /** Compare and swap: replaces `before` by `after`; `undefined` means no value. False when there is another value. */
  exchange(name: string, before: string | undefined, after: string | undefined): Promise<boolean>;
  /** Writes a setting as it is: resolves if the store takes changes, and waits for no other change of this process. */
  touch(name: string): Promise<void>;
}

/** A stored session of a client, and its holder: only this life may change the row. */
export interface StoredSession extends NodeLife {
  /** The SHA-256 of the id of the session, in hex: the id is a credential. */
  readonly key: string;
  /** The generation: 1 at first, and 1 more with each claim. */
  readonly generation: number;
  /** The session as text. It is encrypted in the database where there is a cipher. */
  readonly value: string;
  /** The time at which the row was written last, ISO 8601. */
  readonly usedAt: string;
}

/** The most rows of one operation of a SessionStore: databases limit the values in a list. */
export const MAX_SESSION_ROWS = 100;

/**
 * The sessions of clients, which outlive their node. No change is one of the revision. On a file the changes do not
 * wait for the disk: they survive the end of the process, and a power failure loses those of the last second. At most
 * MAX_SESSION_ROWS in each operation.
 */
export interface SessionStore {
  /** Inserts rows. Ignores those that are stored: the answer to an earlier attempt may be lost. */
  insert(rows: readonly StoredSession[]): Promise<void>;
  /**
   * Changes the rows that the life holds. Resolves with the life that holds each row, by key, without the keys that have no row.
   */
  update(
    life: string,
    changes: readonly Pick<StoredSession, 'key' | 'value' | 'usedAt'>[],
  ): Promise<ReadonlyMap<string, string>>;
  /** The rows of these keys, without those that do not exist or cannot be decrypted. */
  read(keys: readonly string[]): Promise<StoredSession[]>;
  /**
   * Makes `holder` the holder of the rows whose holder is still the one that was read. Resolves with the rows that it
   * holds now, in their present state.
   */
  claim(rows: readonly StoredSession[], holder: NodeLife): Promise<StoredSession[]>;
  /** Deletes the rows that the life holds. */
  delete(life: string, keys: readonly string[]): Promise<void>;
  /**
   * Deletes rows of other lives of the node, except the `keep` that were used last. Resolves with their number: 0
   * when it is done.
   */
  trim(holder: NodeLife, keep: number): Promise<number>;
}

/** One start of a node of the deployment: see LifeRow in cluster/rules. The row stays when the life has ended. */
export interface StoredLife {
  readonly life: string;
  readonly node: string;
  /** The number of heartbeats. */
  readonly counter: number;
  /** The part that stays the same for the whole life, as text. */
  readonly profile: string;
  /** The part that each heartbeat writes, as text. */
  readonly state: string;
  readonly end: LifeEnd | undefined;
}

/** The most lives that are read, those that have freed all last: of 64 nodes, and those that ended in the last half hour. */
export const MAX_LIVES = 1_000;

/**
 * The lives of the nodes. Each change names the values that were read, so that one that comes late, or twice, changes
 * nothing; none is a change of the revision. The simulation has them as functions: spec/cluster/rules/updates.ts.
 */
export interface NodeStore {
  list(): Promise<StoredLife[]>;
  /** Inserts a life. Ignores one that is stored: the answer to an earlier attempt may be lost. */
  insert(life: StoredLife): Promise<void>;
  /** Writes a heartbeat. False when there is no such life, or it has ended. */
  beat(life: string, state: string): Promise<boolean>;
  /**
   * Ends a life whose counter is still this one, or any if undefined; or frees all of one that had ended for its sessions. False
   * when nothing was changed.
   */
  end(life: string, counter: number | undefined, end: LifeEnd): Promise<boolean>;
  /**
   * Deletes lives that have ended and free all, with the sessions that they still own; with the last life of a node also those
   * that it has released.
   */
  delete(lives: readonly string[]): Promise<void>;
}

/**
 * The lease of a program that any node may run: see ProgramRow in cluster/rules. A program without a row has the generation 0.
 */
export interface StoredProgram {
  /** The server id of the instance. */
  readonly program: string;
  /** The holder; undefined while there is none. */
  readonly life: string | undefined;
  /** The generation: each lease adds one. */
  readonly generation: number;
  /** The nodes that could not start it, as text. */
  readonly marks: string;
}

/** The leases of programs. They are changed in the same way as the lives. */
export interface ProgramStore {
  list(): Promise<StoredProgram[]>;
  /**
   * Gives the lease of the program to the life, if it is still of this generation, which grows by one. False when nothing was
   * changed.
   */
  take(program: string, generation: number, life: string): Promise<boolean>;
  /** Ends this lease. False when it was not the lease of the program. */
  release(lease: StoredProgram): Promise<boolean>;
  /** Deletes rows that have not changed since they were read. */
  delete(rows: readonly StoredProgram[]): Promise<void>;
}

/** The audit log: append-only, except for the removal of its oldest entries. */
export interface AuditStore {
  /**
   * Appends at most MAX_ROWS changes and logins. Ignores stored ones, like `appendCalls`: the answer to an earlier
   * attempt may be lost.
   */
  append(changes: readonly AuditEntry[]): Promise<void>;
  appendCalls(block: CallBlock): Promise<void>;
  /**
   * The entries of a page, newest first. A search over many entries is done in parts, each by `inTurn`. Default: one
   * after the other.
   */
  list(page: AuditPage, inTurn?: InTurn): Promise<AuditEntry[]>;
  trim(bounds: AuditBounds): Promise<void>;
}

/** Does one part of a search when it is its turn. Throws the error of the part, or when the search is no longer wanted. */
export type InTurn = <T>(part: () => Promise<T>) => Promise<T>;

export interface AuditPage extends AuditFilter {
  readonly limit: number;
  /** The id that the entries must be before: that of the last entry of the previous page. */
  readonly before?: string | undefined;
  /** The least id of the entries. */
  readonly from?: string | undefined;
}

/** The bounds of the kept entries; older entries are deleted. */
export interface AuditBounds {
  /** The number of newest changes and logins that are kept. */
  readonly changes: number;
  /** The number of newest calls that are kept; the others of their oldest block are kept, too. */
  readonly calls: number;
  /** The least id of entries that are not too old: older ones are deleted, at most `mostExpired`. Default: none is. */
  readonly from?: string | undefined;
}

/** The migrations of a database by name, in the order in which they are applied. */
export interface MigrationStatus {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
  /** The migrations that another program applied: see isOfOlderBuild. */
  readonly unknown: readonly string[];
}
