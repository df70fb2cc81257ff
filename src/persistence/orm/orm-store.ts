// The store in a database, without what the other files orm-… have. Rows become domain types; secrets of an instance
// (values of environment variables and headers, and how it reaches an account) are encrypted in its row.

import { isDeepStrictEqual } from 'node:util';
import { UniqueConstraintViolationException } from '@mikro-orm/core';
import { changedTemplate, type TemplateSettings } from '../../balancing/template-settings.ts';
import { configIncomplete, duplicateServer } from '../../domain/errors/error-catalogue.ts';
import type { InstanceDefinition } from '../../domain/instances/instance.ts';
import { eachInGroups } from '../../domain/tasks/task-groups.ts';
import { type Cipher, CipherError } from '../cipher.ts';
import type { InstanceSave, SettingStore, Store } from '../store.ts';
import { readRow } from '../store-errors.ts';
import {
  type Columns,
  columnsOf,
  fromDocument,
  type InstanceTableRow,
  recordOf,
  toDocument,
} from './entities.ts';
import { ormAccounts } from './orm-accounts.ts';
import { ormApprovals } from './orm-approvals.ts';
import { OrmAudit } from './orm-audit.ts';
import { ormDefinitions } from './orm-definitions.ts';
import { ormLists } from './orm-lists.ts';
import { ormNodes } from './orm-nodes.ts';
import { ormOAuth } from './orm-oauth.ts';
import { type OrmOperations, REVISION } from './orm-operations.ts';
import { ormPrograms } from './orm-programs.ts';
import { ormSessions } from './orm-sessions.ts';
import { ormViews } from './orm-views.ts';
import { purposeOfInstance, SECRET_FIELDS, type SecretField } from './sealed.ts';

/**
 * Lists are in the order of the first save; their rows are no entities, which take eight times as long. `kind` and `file`: see
 * Store. Without a cipher it refuses instances with secrets.
 */
export function ormStore(
  kind: string,
  operations: OrmOperations,
  cipher: Cipher | undefined,
  file?: string,
): Store {
  return {
    kind,
    file,
    accounts: ormAccounts(operations),
    settings: ormSettings(operations),
    audit: new OrmAudit(operations),
    sessions: ormSessions(operations, cipher),
    lists: ormLists(operations, cipher),
    approvals: ormApprovals(operations),
    nodes: ormNodes(operations),
    programs: ormPrograms(operations),
    oauth: ormOAuth(operations, cipher),
    definitions: ormDefinitions(operations),
    views: ormViews(operations),
    listTemplates: () =>
      operations.run(async (em, { templates }) => {
        const rows = await em.createQueryBuilder(templates).orderBy({ position: 'asc' }).execute('all');
        return rows.map((row) => readRow('templates', row.name, () => recordOf<TemplateSettings>(row)));
      }),
    saveTemplate: (change) =>
      operations.change(async (em, { templates }, position) => {
        const { name } = change;
        const [row] = await em.createQueryBuilder(templates).where({ name }).execute('all');
        const before = row === undefined ? { loadBalancer: {} } : recordOf<TemplateSettings>(row);
        const columns = columnsOf({ auth: undefined, ...changedTemplate(before, change) });
        if (row === undefined) await em.insert(templates, { ...columns, position });
        else await em.nativeUpdate(templates, { name }, columns);
        return position;
      }),
    deleteTemplate: (name) =>
      operations.changeIf(async (em, { templates, instances }) => {
        const isEmpty = (await em.count(instances, { template: name })) === 0;
        return isEmpty && (await em.nativeDelete(templates, { name })) > 0;
      }),
    listInstances: async () => {
      const rows = await operations.run((em, { instances }) =>
        em.createQueryBuilder(instances).orderBy({ position: 'asc' }).execute('all'),
      );
      const definitions: InstanceDefinition[] = [];
      await eachInGroups(rows, (row) => definitions.push(instanceOf(row, secretsOf(row, cipher))));
      return definitions;
    },
    saveInstance: (definition, before) => saveInstances(operations, cipher, [{ definition, before }]),
    saveInstances: (saves) => saveInstances(operations, cipher, saves),
    deleteInstance: (template, id, fingerprint) =>
      operations.changeIf(async (em, { instances, tombstones }) => {
        if ((await em.nativeDelete(instances, { template, id })) === 0) return false;
        if (fingerprint !== undefined) {
          await em.nativeDelete(tombstones, { template, id });
          await em.insert(tombstones, { template, id, fingerprint });
        }
        return true;
      }),
    deleteInstances: (template, ids) =>
      operations.changeIf(
        async (em, { instances }) =>
          (await em.nativeDelete(instances, { template, id: { $in: [...ids] } })) > 0,
      ),
    findTombstones: (template, ids) =>
      operations.run(async (em, { tombstones }) => {
        const rows = await em.find(tombstones, { template, id: { $in: [...ids] } });
        return new Map(rows.map(({ id, fingerprint }) => [id, fingerprint]));
      }),
    revision: () =>
      operations.run(async (em, { revision }) => {
        const row = await em.findOneOrFail(revision, { name: REVISION });
        return row.counter;
      }),
    rekey: async (onProgress) => {
      if (cipher === undefined) throw configIncomplete(NO_CIPHER);
      const { rekey } = await import('./orm-rekey.ts');
      return rekey(operations, cipher, onProgress);
    },
    serverTimeMs: () => operations.serverTimeMs(),
    ping: () => operations.probe(),
    close: () => operations.close(),
  };
}

/** Few statements for all of them: each one takes longer than the rest of the work for an instance. */
async function saveInstances(
  operations: OrmOperations,
  cipher: Cipher | undefined,
  saves: readonly InstanceSave[],
): Promise<number | undefined> {
  const writes = saves.map(({ definition, before }) => {
    const { template, id, locked } = definition;
    if (locked !== undefined) throw configIncomplete(locked);
    const columns = { ...rowOfInstance(definition), ...encrypted(definition, cipher), template, id };
    return { columns, before };
  });
  const keys = writes.map(({ columns: { template, id } }) => ({ template, id }));
  const serverIds = writes.map(({ columns }) => columns.serverId);
  return operations.changeIf(async (em, { instances, tombstones }, revision) => {
    const found: InstanceTableRow[] = await em
      .createQueryBuilder(instances)
      .where({ $or: [...keys, { serverId: { $in: serverIds } }] })
      .execute('all');
    const stored = new Map(found.map((row) => [`${row.template}/${row.id}`, row]));
    const namesakes = new Map<string, Pick<InstanceTableRow, 'template' | 'id'>>(
      found.map((row) => [row.serverId, row]),
    );
    const added: (Columns<InstanceTableRow> & { position: number })[] = [];
    for (const [index, { columns, before }] of writes.entries()) {
      const { template, id, serverId } = columns;
      const row = stored.get(`${template}/${id}`);
      const present = row === undefined ? null : instanceOf(row, secretsOf(row, cipher));
      if (before !== undefined && !isDeepStrictEqual(present, before)) return false;
      const namesake = namesakes.get(serverId) ?? columns;
      if (namesake.template !== template || namesake.id !== id) throw duplicateServer(serverId);
      if (row !== undefined) namesakes.delete(row.serverId);
      namesakes.set(serverId, columns);
      if (row !== undefined) await em.nativeUpdate(instances, { template, id }, columns);
      // In the order of the definitions.
      else added.push({ ...columns, position: revision - writes.length + 1 + index });
    }
    await operations.insertRows(em, instances, added);
    await em.nativeDelete(tombstones, { $or: keys });
    return true;
  }, writes.length);
}

/** An empty field is not encrypted. */
function encrypted(definition: InstanceDefinition, cipher: Cipher | undefined) {
  const column = (field: SecretField) => {
    if (Object.keys(definition[field] ?? {}).length === 0) return null;
    if (cipher === undefined) throw configIncomplete(NO_CIPHER);
    return cipher.encrypt(JSON.stringify(definition[field]), purposeOfInstance(definition, field));
  };
  return { env: column('env'), headers: column('headers'), auth: column('auth') };
}

/** A field that cannot be decrypted locks the instance. */
function secretsOf(
  row: InstanceTableRow,
  cipher: Cipher | undefined,
): Pick<InstanceDefinition, SecretField | 'locked'> {
  const secrets: Pick<InstanceDefinition, SecretField> = { env: {}, headers: {} };
  for (const field of SECRET_FIELDS) {
    try {
      if (!row[field]) continue;
      if (cipher === undefined) throw new CipherError('there is no encryption key');
      Object.assign(secrets, {
        [field]: JSON.parse(cipher.decrypt(row[field], purposeOfInstance(row, field))),
      });
    } catch (thrown) {
      const reason = thrown instanceof CipherError ? thrown.message : 'unknown reason';
      const location = `"${field}" of the instance ${row.template}/${row.id}`;
      return { env: {}, headers: {}, locked: `${location} cannot be read: ${reason}; ${HOW_TO_READ}` };
    }
  }
  return secrets;
}

const HOW_TO_READ =
  'give the GATEWAY_ENCRYPTION_KEY, or the signing secret (GATEWAY_SECRET_KEY, gateway.key), with which it was stored';
const NO_CIPHER =
  'Environment variables, headers and accounts of instances are stored encrypted: set GATEWAY_SECRET_KEY ' +
  'or GATEWAY_ENCRYPTION_KEY on every gateway of this database.';

function ormSettings(operations: OrmOperations): SettingStore {
  return {
    read: (name) =>
      operations.run(async (em, { settings }) => {
        const row = await em.findOne(settings, { name });
        // Written by `exchange`.
        return row === null ? undefined : readRow('settings', name, () => fromDocument(row.value) as string);
      }),
    exchange: (name, before, after) =>
      operations.write(async (em, { settings }) => {
        // Locks an existing row until the end of the transaction.
        await em.nativeUpdate(settings, { name }, { name });
        const row = await em.findOne(settings, { name });
        const stored = row === null ? undefined : readRow('settings', name, () => fromDocument(row.value));
        if (stored !== before) return false;
        try {
          if (after === undefined) await em.nativeDelete(settings, { name });
          else if (row !== null) await em.nativeUpdate(settings, { name }, { value: toDocument(after) });
          else await em.insert(settings, { name, value: toDocument(after) });
          return true;
        } catch (thrown) {
          if (thrown instanceof UniqueConstraintViolationException) return false; // another node inserted it first
          throw thrown;
        }
      }),
  };
}

type Target = Pick<
  InstanceDefinition,
  'endpoint' | 'command' | 'args' | 'workingDir' | 'era' | 'force' | 'secretEnv' | 'container'
>;

/** Without the key. */
function rowOfInstance(
  definition: InstanceDefinition,
): Omit<Columns<InstanceTableRow>, SecretField | 'template' | 'id'> {
  const { template, id, env, headers, auth, locked, ...others } = definition;
  const { endpoint, command, args, workingDir, era, force, secretEnv, container, ...own } = others;
  const target = toDocument({ endpoint, command, args, workingDir, era, force, secretEnv, container });
  return columnsOf({ nodeId: undefined, fingerprint: undefined, ...own, target });
}

/** The cast is the type that `rowOfInstance` wrote. */
function instanceOf(
  { target, env: _, headers: __, auth: ___, ...row }: InstanceTableRow,
  secrets: Pick<InstanceDefinition, SecretField | 'locked'>,
): InstanceDefinition {
  return readRow('instances', `${row.template}/${row.id}`, () => {
    const own = recordOf<Omit<InstanceDefinition, keyof Target | SecretField | 'locked'>>(row);
    return { ...own, ...(fromDocument(target) as Target), ...secrets };
  });
}
