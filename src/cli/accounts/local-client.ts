// Accounts in the database itself, without a gateway: for the first user of a machine, for scripts, and for a lost
// password. A gateway on the same database sees every change within 10 s.

import { Accounts, type ApiKeyView } from '../../auth/accounts.ts';
import { AuditLog } from '../../auth/audit.ts';
import { forgetInitialPassword } from '../../auth/first-admin.ts';
import { Passwords } from '../../auth/passwords.ts';
import type { User } from '../../domain/account.ts';
import { asGatewayError } from '../../domain/errors.ts';
import { apiKeyRecord } from '../../http/routes/api-keys.ts';
import { userRecord } from '../../http/routes/users.ts';
import { readCatalogue } from '../../templates/catalogue.ts';
import { fields, issueText } from '../answers.ts';
import type { CommandInput } from '../command.ts';
import { openDatabase } from '../database/open-database.ts';
import { CommandFailure } from '../failures.ts';
import { readSettings } from '../setting-options.ts';
import type { Terminal } from '../terminal.ts';
import type { AccountClient } from './account-client.ts';

/** Opens the database that these options, the environment and gateway.yaml name. It has to be there. */
export async function openLocalClient(input: CommandInput, terminal: Terminal): Promise<AccountClient> {
  const config = readSettings(input, terminal);
  const { store, name, initialPasswordFile } = await openDatabase(config, terminal);
  terminal.note(`using the database ${name}`);
  const now = Date.now;
  const audit = new AuditLog({
    store: store.audit,
    log: { warn: (...words: unknown[]) => terminal.note(`warning: ${words.at(-1)}`) },
    now,
  });
  const accounts = new Accounts({
    store: store.accounts,
    passwords: new Passwords(),
    now,
    onChange: () => {}, // this process verifies no caller
    onAdminPasswordChanged: () => {
      forgetting = forget();
    },
    flushKeyUse: async () => {}, // and no key is used
  });

  let forgetting: Promise<void> | undefined;
  /** The next start of the gateway does it again. */
  const forget = async () => {
    await forgetInitialPassword(initialPasswordFile).catch(() => {
      terminal.note(`warning: the first password of admin could not be deleted: ${initialPasswordFile}`);
    });
  };
  /** One change: done, and written into the audit log. Subjects are paths of the API, as they are in its entries. */
  const change = async <T>(
    action: string,
    subject: (done: T) => string,
    work: () => Promise<T>,
  ): Promise<T> => {
    const done = await said(work);
    const actor = { actor: 'local', actorName: actorName(terminal) };
    audit.record({ ...actor, action, subject: subject(done), status: 0 });
    return done;
  };
  const userPath = ({ id }: User) => `/auth/users/${id}`;
  return {
    users: () => said(async () => (await accounts.users()).map((user) => fields(userRecord(user)))),
    createUser: async (user) =>
      fields(userRecord(await change('POST /auth/users', userPath, () => accounts.createUser(user)))),
    setPassword: async (id, password) =>
      fields(
        userRecord(
          await change('PATCH /auth/users/:user_id', userPath, () => accounts.changeUser(id, { password })),
        ),
      ),
    deleteUser: (id) =>
      change(
        'DELETE /auth/users/:user_id',
        () => `/auth/users/${id}`,
        () => accounts.deleteUser(id),
      ),
    apiKeys: () => said(async () => (await accounts.apiKeys()).map((view) => fields(apiKeyRecord(view)))),
    createApiKey: async (input) => {
      const path = ({ apiKey: { apiKey } }: { apiKey: ApiKeyView }) => `/auth/api-keys/${apiKey.id}`;
      const { apiKey, key } = await change('POST /auth/api-keys', path, () => accounts.createApiKey(input));
      return { ...fields(apiKeyRecord(apiKey)), key };
    },
    revokeApiKey: (id) =>
      change(
        'DELETE /auth/api-keys/:key_id',
        () => `/auth/api-keys/${id}`,
        () => accounts.revokeApiKey(id),
      ),
    templates: () =>
      said(async () => {
        // A gateway on this database has those of its folder as well.
        const [{ templates: defined }, templates, instances] = await Promise.all([
          readCatalogue(config.templatesFolder),
          store.listTemplates(),
          store.listInstances(),
        ]);
        const saved = [...templates.map(({ name }) => name), ...instances.map(({ template }) => template)];
        return [...new Set([...defined.map(({ id }) => id), ...saved])];
      }),
    close: async () => {
      await forgetting;
      await audit.close();
      await store.close();
    },
  };
}

/** The person at the machine, as far as they say. */
function actorName({ env }: Terminal): string {
  return env.SUDO_USER || env.USER || env.USERNAME || 'operator';
}

/** Errors of accounts and the database, in the form in which a gateway's are shown. */
async function said<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const error = asGatewayError(thrown);
    // A defect is shown with its stack.
    if (error.code === 'INTERNAL_ERROR') throw thrown;
    const reason = error.facts.items?.map(issueText).join('; ') ?? error.message;
    throw new CommandFailure(`${reason.replace(/\.$/, '')} (${error.code})`, { cause: thrown });
  }
}
