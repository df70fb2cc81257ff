// The tables, the column types of each database, and values as JSON in a column. Each column stores its values exactly:
// compared by code points, with lengths in bytes or characters, long documents, milliseconds. No entity leaves this folder.

import { defineEntity, type InferEntity, p, raw, Type } from '@mikro-orm/core';
import type { DatabaseKind } from '../database.ts';

export const CALL_BLOCKS = 'audit_call_blocks';

export type Tables = ReturnType<typeof tablesFor>;

export function tablesFor(kind: DatabaseKind) {
  const { id, text, document, number, counter, flag, time } = columnsFor(kind);
  return {
    /** The settings of templates that differ from the defaults. */
    templates: defineEntity({
      name: 'Template',
      tableName: 'templates',
      properties: {
        name: id(128).primary(),
        loadBalancer: document(),
        auth: document().nullable(),
        /** The revision of the insert; lists are in this order. */
        position: counter(),
      },
    }),
    /** The template definitions that were stored through the API. */
    definitions: defineEntity({
      name: 'Definition',
      tableName: 'definitions',
      properties: {
        id: id(128).primary(),
        /** The document: see StoredDefinition. */
        value: document(),
        /** The revision of the insert; lists are in this order. */
        position: counter(),
      },
    }),
    /** The instances. Values for queries and for database tools have columns; the others are in documents. */
    instances: defineEntity({
      name: 'Instance',
      tableName: 'instances',
      properties: {
        template: id(128).primary(),
        id: id(128).primary(),
        serverId: id(260).unique(),
        position: counter(),
        transport: id(16),
        weight: number(),
        source: id(16),
        nodeId: id(255).nullable(),
        fingerprint: id(128).nullable(),
        /** The fields `endpoint`, `command`, `args`, `workingDir`, `era`, `force`, `secretEnv`, `container`. */
        target: document(),
        /** The variables, encrypted; null when there are none. */
        env: document().nullable(),
        headers: document().nullable(),
        auth: document().nullable(),
        metadata: document(),
        createdAt: time(),
        updatedAt: time(),
      },
    }),
    /**
     * Entries of the registry file and of sync that were deleted through the API. A row stays until its entry
     * changes: a container that is started again, or the file of another node, may name the entry later. Each row
     * is one deregistration by hand.
     */
    tombstones: defineEntity({
      name: 'Tombstone',
      tableName: 'tombstones',
      properties: {
        template: id(128).primary(),
        id: id(128).primary(),
        fingerprint: id(128),
      },
    }),
    views: defineEntity({
      name: 'View',
      tableName: 'views',
      properties: {
        id: id(128).primary(),
        position: counter(),
        definition: document(),
        /** The tools and prompts that own bare names. */
        names: document(),
        source: id(16),
        fingerprint: id(128).nullable(),
        updatedAt: time(),
      },
    }),
    users: defineEntity({
      name: 'User',
      tableName: 'users',
      properties: {
        id: id(64).primary(),
        username: id(64),
        /** The name in lower case: `Ada` and `ada` are one user. */
        usernameKey: id(64).unique(),
        position: counter(),
        email: text(),
        /** The role; 'defined' for a role of the settings, which `definedRole` names: the column is too short for it. */
        role: id(16),
        definedRole: id(32).nullable(),
        scopes: document().nullable(),
        templates: document().nullable(),
        views: document().nullable(),
        tools: document().nullable(),
        isActive: flag(),
        passwordHash: id(128),
        credentialsChangedAt: time(),
        createdAt: time(),
        updatedAt: time(),
      },
    }),
    /** The API keys, without their secrets. */
    apiKeys: defineEntity({
      name: 'ApiKey',
      tableName: 'api_keys',
      properties: {
        id: id(64).primary(),
        name: text(),
        position: counter(),
        permissions: document(),
        templates: document().nullable(),
        views: document().nullable(),
        tools: document().nullable(),
        expiresAt: time().nullable(),
        ownerId: id(64).nullable().index(),
        secretHash: id(128),
        createdAt: time(),
        lastUsedAt: time().nullable(),
      },
    }),
    /** Single values of the installation. */
    settings: defineEntity({
      name: 'Setting',
      tableName: 'settings',
      properties: {
        name: id(128).primary(),
        value: document(),
      },
    }),
    /** The audit log: changes and logins. */
    audit: defineEntity({
      name: 'AuditEntry',
      tableName: 'audit_log',
      properties: {
        id: id(64).primary(),
        at: time(),
        actor: text(),
        actorName: text().nullable(),
        action: text(),
        subject: text().nullable(),
        status: number(),
        address: text().nullable(),
        requestId: text().nullable(),
        suppressed: number().nullable(),
      },
    }),
    /** The audit log: calls of tools. They are many, so a row holds those that are close in time. */
    callBlocks: defineEntity({
      name: 'CallBlock',
      tableName: CALL_BLOCKS,
      properties: {
        /** The id of its newest entry. */
        id: id(64).primary(),
        calls: number(),
        /** The calls: see CallBlock. */
        entries: document(),
      },
    }),
    /** The sessions of clients of the legacy era, as far as they outlive their node. */
    sessions: defineEntity({
      name: 'Session',
      tableName: 'sessions',
      properties: {
        /** The SHA-256 of the id, in hex. */
        key: id(64).primary(),
        /** The holder: node and life. */
        node: id(255).index(),
        life: id(16),
        generation: number(),
        /** The session: see StoredSession. Encrypted where there is a cipher. */
        value: document(),
        usedAt: time(),
      },
    }),
    /** The lives of the nodes. */
    nodes: defineEntity({
      name: 'Node',
      tableName: 'nodes',
      properties: {
        life: id(16).primary(),
        node: id(255),
        counter: counter(),
        /** The profile: see StoredLife. */
        profile: document(),
        state: document(),
        endCause: id(16).nullable(),
        endFrees: id(16).nullable(),
      },
    }),
    /** The leases of the programs that any node may run. */
    programs: defineEntity({
      name: 'Program',
      tableName: 'programs',
      properties: {
        /** The server id of the instance. */
        program: id(260).primary(),
        /** The holder; null while there is none. */
        life: id(16).nullable(),
        generation: number(),
        /** The marks: see StoredProgram. */
        marks: document(),
      },
    }),
    /** The authorization server, and connections to backends: see OAuthRow. */
    oauth: defineEntity({
      name: 'OAuth',
      tableName: 'oauth',
      properties: {
        /** The SHA-256 of kind and id, in hex. */
        key: id(64).primary(),
        kind: id(16),
        grantId: id(64).nullable().index(),
        userId: id(64).nullable().index(),
        /** The SHA-256 of the id of the client, in hex. */
        clientKey: id(64).nullable().index(),
        createdAt: time(),
        usedAt: time().nullable(),
        consumedAt: time().nullable(),
        expiresAt: time().nullable().index(),
        version: number(),
        /** The value, encrypted where there is a cipher. */
        value: document(),
      },
    }),
    /** The lists of templates as they were read last. */
    lists: defineEntity({
      name: 'List',
      tableName: 'lists',
      properties: {
        key: id(64).primary(),
        template: id(128).index(),
        readAt: time().index(),
        /** The list, encrypted where there is a cipher. */
        value: document(),
      },
    }),
    /** The approved definitions of tools. */
    approvals: defineEntity({
      name: 'Approval',
      tableName: 'approvals',
      properties: {
        /** The SHA-256 of scope and tool, in hex. */
        key: id(64).primary(),
        scope: id(128).index(),
        tool: document(),
        digests: document(),
        /** The definition: see NewApproval. */
        definition: document(),
      },
    }),
    /**
     * The one row that counts the changes of registry and accounts. Each change updates it first, which locks it for
     * other writers.
     */
    revision: defineEntity({
      name: 'Revision',
      tableName: 'revision',
      properties: {
        name: id(16).primary(),
        counter: counter(),
      },
    }),
  };
}

/** A row of the table, as the operations read it. */
export type TableRow<Name extends keyof Tables> = InferEntity<Tables[Name]>;

/** The columns of a row without its position, which a change keeps. */
export type Columns<Row> = { [Name in Exclude<keyof Row & string, 'position'>]-?: Row[Name] };

/** The most UTF-16 units of free text in a short column: at least LIMITS.auditTextUnits. */
const MAX_TEXT_LENGTH = 512;

function columnsFor(kind: DatabaseKind) {
  const collation = COLLATIONS[kind];
  const isOracle = kind === 'oracle';
  // It counts lengths in bytes, the others in characters.
  const bytesPerCharacter = isOracle ? 3 : 1;
  return {
    /** An identifier: ASCII, compared and ordered by code points. */
    id: (length: number) => {
      const column = p.string().length(length);
      return collation === undefined ? column : column.collation(collation);
    },
    /** A short text of any script. Oracle stores an empty text as null, so a column that may be empty is nullable. */
    text: () => p.string().length(MAX_TEXT_LENGTH * bytesPerCharacter),
    /** A JSON or encrypted text: ASCII, up to megabytes. */
    document: () => (isOracle ? p.text().type(ClobType) : p.text().columnType(DOCUMENTS[kind] ?? 'text')),
    number: () => p.integer(),
    /**
     * A number that grows. Oracle's integers have ten digits: a longer type would always show up as a difference
     * between schemas.
     */
    counter: () => p.bigint('number').columnType(isOracle ? 'number(10, 0)' : 'bigint'),
    /** A flag, 0 or 1: the type boolean is unknown to Oracle before 23. */
    flag: () => p.integer(),
    /** A time to the millisecond: without a length MySQL drops the fraction of the second. */
    time: () => p.datetime().length(3),
  };
}

/** The binary comparison, where neither the database nor the table (MySQL) compares so by default. */
const COLLATIONS: Readonly<Partial<Record<DatabaseKind, string>>> = {
  postgresql: 'C',
  mssql: 'Latin1_General_BIN2',
};

/** The type of a long text, where it is not `text`. Documents are ASCII: varchar takes half the space of nvarchar. */
const DOCUMENTS: Readonly<Partial<Record<DatabaseKind, string>>> = {
  mysql: 'longtext',
  mssql: 'varchar(max)',
};

/** The most characters of a literal: Oracle's limit is 4,000 bytes, and a character may count as two. */
const MAX_LITERAL_CHARACTERS = 1_990;

/** A `clob` column of ASCII text, written as a concatenation of literals. */
class ClobType extends Type<string | null, unknown> {
  override convertToDatabaseValue(text: string | null): unknown {
    if (typeof text !== 'string' || text.length <= MAX_LITERAL_CHARACTERS) return text;
    const parts = Array.from({ length: Math.ceil(text.length / MAX_LITERAL_CHARACTERS) }, (_, index) =>
      text.slice(index * MAX_LITERAL_CHARACTERS, (index + 1) * MAX_LITERAL_CHARACTERS),
    );
    return raw(parts.map(() => 'to_clob(?)').join(' || '), parts);
  }

  override getColumnType(): string {
    return 'clob';
  }
}

/**
 * One value as JSON of printable ASCII characters without `'` and `$`: no database, character set or quoting
 * mode misreads it, and no collation changes it.
 */
export function toDocument(value: unknown): string {
  return documentOf(JSON.stringify(value));
}

/** The document of a value that JSON.stringify has written: it has no other control character than DEL. See `toDocument`. */
export function documentOf(json: string): string {
  if (!/['$\x7f]/.test(json) && Buffer.byteLength(json) === json.length) return json;
  // No u flag: a surrogate pair is two UTF-16 units.
  return json.replace(
    /[^\x20-\x7e]|['$]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The value of `toDocument`, with the shape in which it was written. */
export function fromDocument(text: string): unknown {
  return JSON.parse(text);
}

/** The names of columns with a time, and of those with a document for one field of a record. */
const TIMES = [
  ...(['at', 'createdAt', 'updatedAt', 'credentialsChangedAt', 'expiresAt', 'lastUsedAt'] as const),
  ...(['usedAt', 'consumedAt'] as const),
] as const;
const VALUES = [
  ...(['permissions', 'scopes', 'templates', 'views', 'tools'] as const),
  ...(['metadata', 'loadBalancer', 'auth', 'definition', 'names'] as const),
] as const;

/** The columns of a record with these fields. */
type ColumnsOf<Fields> = {
  [Name in keyof Fields]: ColumnOf<Name, Exclude<Fields[Name], undefined>> | NullFor<Fields[Name]>;
};
type NullFor<Value> = undefined extends Value ? null | undefined : never;
type ColumnOf<Name, Value> = Name extends (typeof TIMES)[number]
  ? Date
  : Name extends (typeof VALUES)[number]
    ? string
    : Value extends boolean
      ? number
      : Value extends string
        ? string
        : Value;

/** The columns of the fields of a record: an undefined field is null. */
export function columnsOf<Fields extends object>(fields: Fields): ColumnsOf<Fields> {
  const columns = Object.entries(fields).map(([name, value]) => [name, columnOf(name, value)]);
  return Object.fromEntries(columns);
}

function columnOf(name: string, value: unknown): unknown {
  if (value === undefined) return null;
  if (isOneOf(TIMES, name)) return new Date(String(value));
  if (typeof value === 'boolean') return Number(value);
  return isOneOf(VALUES, name) ? toDocument(value) : value;
}

function isOneOf(names: readonly string[], name: string): boolean {
  return names.includes(name);
}

/** The fields of a row that `columnsOf` wrote, without those that are null or empty, which Oracle does not distinguish. */
export function recordOf<Fields>(row: ColumnsOf<Fields> & { readonly position?: number }): Fields {
  const { position: _, ...columns } = row;
  const fields = Object.entries(columns).filter(([, value]: [string, unknown]) => (value ?? '') !== '');
  return Object.fromEntries(fields.map(([name, value]) => [name, fieldOf(name, value)])) as Fields;
}

function fieldOf(name: string, value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  return isOneOf(VALUES, name) ? fromDocument(String(value)) : value;
}
