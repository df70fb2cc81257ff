// The instances in a database. Rows become domain types, and are not entities, which take eight times as long. Secrets of an
// instance (values of environment variables and headers, and how it reaches an account) are encrypted in its row.

import { isDeepStrictEqual } from 'node:util';
import { configIncomplete, duplicateServer } from '../../../domain/errors/registry-errors.ts';
import type { InstanceDefinition } from '../../../domain/instances/instance.ts';
import { eachInGroups } from '../../../domain/time/task-groups.ts';
import { type Cipher, CipherError } from '../../cipher.ts';
import type { InstanceSave, InstanceStore } from '../../store.ts';
import { readRow } from '../../store-errors.ts';
import type { OrmOperations } from '../connection/orm-operations.ts';
import { type Columns, columnsOf, fromDocument, recordOf, type TableRow, toDocument } from '../entities.ts';
import { purposeOfInstance, SECRET_FIELDS, type SecretField } from '../sealed.ts';
import { TableRows } from './table-rows.ts';

/** The InstanceStore of a database. Without a cipher it refuses instances with secrets. */
export function ormInstances(operations: OrmOperations, cipher: Cipher | undefined): InstanceStore {
  return {
    list: async () => {
      const rows = await operations.run((em, { instances }) =>
        new TableRows(em, instances, operations).find({}, 'position'),
      );
      const definitions: InstanceDefinition[] = [];
      await eachInGroups(rows, (row) => definitions.push(instanceOf(row, secretsOf(row, cipher))));
      return definitions;
    },
    save: (definition, before) => saveMany(operations, cipher, [{ definition, before }]),
    saveMany: (saves) => saveMany(operations, cipher, saves),
    delete: (template, id, fingerprint) =>
      operations.changeIf(async (em, { instances, tombstones }) => {
        if ((await em.nativeDelete(instances, { template, id })) === 0) return false;
        if (fingerprint !== undefined) {
          await em.nativeDelete(tombstones, { template, id });
          await em.insert(tombstones, { template, id, fingerprint });
        }
        return true;
      }),
    deleteMany: (template, ids, source) =>
      operations.changeIf(async (em, { instances }) => {
        const all = { template, id: { $in: [...ids] }, source };
        return (await em.count(instances, all)) === ids.length && (await em.nativeDelete(instances, all)) > 0;
      }),
    findTombstones: (template, ids) =>
      operations.run(async (em, { tombstones }) => {
        const rows = await em.find(tombstones, { template, id: { $in: [...ids] } });
        return new Map(rows.map(({ id, fingerprint }) => [id, fingerprint]));
      }),
  };
}

/** Saves several instances with few statements: each statement takes longer than the rest of the work for an instance. */
async function saveMany(
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
    const found: TableRow<'instances'>[] = await em
      .createQueryBuilder(instances)
      .where({ $or: [...keys, { serverId: { $in: serverIds } }] })
      .execute('all');
    const stored = new Map(found.map((row) => [`${row.template}/${row.id}`, row]));
    const namesakes = new Map<string, Pick<TableRow<'instances'>, 'template' | 'id'>>(
      found.map((row) => [row.serverId, row]),
    );
    const added: (Columns<TableRow<'instances'>> & { position: number })[] = [];
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

/** The encrypted columns of an instance. An empty field is not encrypted. */
function encrypted(definition: InstanceDefinition, cipher: Cipher | undefined) {
  const column = (field: SecretField) => {
    if (Object.keys(definition[field] ?? {}).length === 0) return null;
    if (cipher === undefined) throw configIncomplete(NO_CIPHER);
    return cipher.encrypt(JSON.stringify(definition[field]), purposeOfInstance(definition, field));
  };
  return { env: column('env'), headers: column('headers'), auth: column('auth') };
}

/** The secrets in a row. A field that cannot be decrypted locks the instance. */
function secretsOf(
  row: TableRow<'instances'>,
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
export const NO_CIPHER =
  'Environment variables, headers and accounts of instances are stored encrypted: set GATEWAY_SECRET_KEY ' +
  'or GATEWAY_ENCRYPTION_KEY on every gateway of this database.';

type TargetFields = Pick<
  InstanceDefinition,
  'endpoint' | 'command' | 'args' | 'workingDir' | 'era' | 'force' | 'secretEnv' | 'container'
>;

/** The row of an instance, without the key and the secrets. */
function rowOfInstance(
  definition: InstanceDefinition,
): Omit<Columns<TableRow<'instances'>>, SecretField | 'template' | 'id'> {
  const { template, id, env, headers, auth, locked, ...others } = definition;
  const { endpoint, command, args, workingDir, era, force, secretEnv, container, ...own } = others;
  const target = toDocument({ endpoint, command, args, workingDir, era, force, secretEnv, container });
  return columnsOf({ nodeId: undefined, fingerprint: undefined, ...own, target });
}

/** The instance in a row. The cast is the type that `rowOfInstance` wrote. */
function instanceOf(
  { target, env: _, headers: __, auth: ___, ...row }: TableRow<'instances'>,
  secrets: Pick<InstanceDefinition, SecretField | 'locked'>,
): InstanceDefinition {
  return readRow('instances', `${row.template}/${row.id}`, () => {
    const own = recordOf<Omit<InstanceDefinition, keyof TargetFields | SecretField | 'locked'>>(row);
    return { ...own, ...(fromDocument(target) as TargetFields), ...secrets };
  });
}
