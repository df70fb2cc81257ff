// The store on a database: templates, instances and tombstones; accounts, settings and the audit log are files of their own.
// Rows become domain types before they leave.

import type { InstanceDefinition } from '../domain/instance.ts';
import { configIncomplete, duplicateServer } from '../domain/registry-errors.ts';
import type { LoadBalancerSettings, TemplateSettings } from '../domain/template.ts';
import { type Cipher, CipherError } from './cipher.ts';
import { fromDocument, toDocument } from './entities.ts';
import { type Encryption, instanceOf, rowOfInstance } from './instance-rows.ts';
import { OrmAccounts } from './orm-accounts.ts';
import { OrmAudit } from './orm-audit.ts';
import { type OrmSession, REVISION } from './orm-session.ts';
import { OrmSettings } from './orm-settings.ts';
import type { AccountStore, AuditStore, SettingStore, Store, Tombstone } from './store.ts';

/** A Store on any database. Lists are in the order of the first saving. */
export class OrmStore implements Store {
  readonly kind: string;
  readonly file: string | undefined;
  readonly accounts: AccountStore;
  readonly settings: SettingStore;
  readonly audit: AuditStore;
  readonly #session: OrmSession;
  readonly #vault: Cipher | undefined;

  /** `kind` and `file` are what `Store` says of them. Without a vault it takes no instance that holds secrets. */
  constructor(kind: string, session: OrmSession, vault: Cipher | undefined, file?: string) {
    this.kind = kind;
    this.file = file;
    this.#session = session;
    this.#vault = vault;
    this.accounts = new OrmAccounts(session);
    this.settings = new OrmSettings(session);
    this.audit = new OrmAudit(session);
  }

  listTemplates(): Promise<TemplateSettings[]> {
    return this.#session.run(async (em, { templates }) => {
      const rows = await em.findAll(templates, { orderBy: { position: 'asc' }, disableIdentityMap: true });
      // Written by saveTemplate.
      return rows.map((row) => ({
        name: row.name,
        loadBalancer: fromDocument(row.loadBalancer) as LoadBalancerSettings,
      }));
    });
  }

  saveTemplate({ name, loadBalancer }: TemplateSettings): Promise<void> {
    const row = { loadBalancer: toDocument(loadBalancer) };
    return this.#session.change(async (em, { templates }, position) => {
      if ((await em.nativeUpdate(templates, { name }, row)) > 0) return;
      await em.insert(templates, { ...row, name, position });
    });
  }

  deleteTemplate(name: string): Promise<boolean> {
    return this.#session.changeIf(
      async (em, { templates }) => (await em.nativeDelete(templates, { name })) > 0,
    );
  }

  listInstances(): Promise<InstanceDefinition[]> {
    return this.#session.run(async (em, { instances }) => {
      const rows = await em.findAll(instances, { orderBy: { position: 'asc' }, disableIdentityMap: true });
      return rows.map((row) => instanceOf(row, this.#seals(row)));
    });
  }

  async saveInstance(definition: InstanceDefinition): Promise<void> {
    const { template, id, serverId, locked } = definition;
    if (locked !== undefined) throw configIncomplete(locked);
    const row = rowOfInstance(definition, this.#seals(definition));
    await this.#session.change(async (em, { instances }, position) => {
      const namesake = await em.findOne(
        instances,
        { serverId },
        { fields: ['template', 'id'], disableIdentityMap: true },
      );
      if (namesake !== null && (namesake.template !== template || namesake.id !== id))
        throw duplicateServer(serverId);
      if ((await em.nativeUpdate(instances, { template, id }, row)) > 0) return;
      await em.insert(instances, { ...row, template, id, position });
    });
  }

  async deleteInstance(template: string, id: string): Promise<boolean> {
    return this.#session.changeIf(
      async (em, { instances }) => (await em.nativeDelete(instances, { template, id })) > 0,
    );
  }

  listTombstones(): Promise<Tombstone[]> {
    return this.#session.run(async (em, { tombstones }) => {
      const rows = await em.findAll(tombstones, {
        orderBy: { template: 'asc', id: 'asc' },
        disableIdentityMap: true,
      });
      return rows.map(({ template, id, fingerprint }) => ({ template, id, fingerprint }));
    });
  }

  saveTombstone({ template, id, fingerprint }: Tombstone): Promise<void> {
    return this.#session.write(async (em, { tombstones }) => {
      await em.nativeDelete(tombstones, { template, id });
      await em.insert(tombstones, { template, id, fingerprint });
    });
  }

  deleteTombstone(template: string, id: string): Promise<void> {
    return this.#session.write(async (em, { tombstones }) => {
      await em.nativeDelete(tombstones, { template, id });
    });
  }

  revision(): Promise<number> {
    return this.#session.run(async (em, { revision }) => {
      const row = await em.findOneOrFail(revision, { name: REVISION }, { disableIdentityMap: true });
      return row.counter;
    });
  }

  ping(): Promise<void> {
    return this.#session.probe();
  }

  close(): Promise<void> {
    return this.#session.close();
  }

  #seals({ template, id }: { readonly template: string; readonly id: string }): Encryption {
    const purpose = (field: string) => `instance:${template}/${id}:${field}`;
    return {
      seal: (text, field) => {
        if (this.#vault === undefined) throw configIncomplete(NO_VAULT);
        return this.#vault.seal(text, purpose(field));
      },
      open: (sealed, field) => {
        try {
          if (this.#vault === undefined) throw new CipherError('there is no encryption key');
          return this.#vault.open(sealed, purpose(field));
        } catch (error) {
          const reason = error instanceof CipherError ? error.message : 'unknown reason';
          throw new CipherError(
            `"${field}" of the instance ${template}/${id} cannot be read: ${reason}; ${HOW_TO_READ}`,
            error,
          );
        }
      },
    };
  }
}

const HOW_TO_READ =
  'give the GATEWAY_ENCRYPTION_KEY, or the signing secret (GATEWAY_SECRET_KEY, gateway.key), with which it was stored';
const NO_VAULT =
  'Environment variables and headers of instances are stored encrypted: set GATEWAY_SECRET_KEY ' +
  'or GATEWAY_ENCRYPTION_KEY on every gateway of this database.';
