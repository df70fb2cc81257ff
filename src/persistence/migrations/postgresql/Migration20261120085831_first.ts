import { Migration } from '@mikro-orm/migrations';

export class Migration20261120085831_first extends Migration {
  override name = 'Migration20261120085831_first';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "api_keys" ("id" varchar(64) collate "C" not null, "name" varchar(512) not null, "position" bigint not null, "permissions" text not null, "templates" text null, "expires_at" timestamptz(3) null, "owner_id" varchar(64) collate "C" null, "secret_hash" varchar(128) collate "C" not null, "created_at" timestamptz(3) not null, "last_used_at" timestamptz(3) null, primary key ("id"));`,
    );
    this.addSql(`create index "api_keys_owner_id_index" on "api_keys" ("owner_id");`);

    this.addSql(
      `create table "audit_log" ("id" varchar(64) collate "C" not null, "at" timestamptz(3) not null, "actor" varchar(512) not null, "actor_name" varchar(512) null, "action" varchar(512) not null, "subject" varchar(512) null, "status" int not null, "address" varchar(512) null, "request_id" varchar(512) null, primary key ("id"));`,
    );

    this.addSql(
      `create table "instances" ("template" varchar(128) collate "C" not null, "id" varchar(128) collate "C" not null, "server_id" varchar(260) collate "C" not null, "position" bigint not null, "transport" varchar(16) collate "C" not null, "weight" int not null, "source" varchar(16) collate "C" not null, "node_id" varchar(255) collate "C" null, "fingerprint" varchar(128) collate "C" null, "target" text not null, "env" text null, "headers" text null, "metadata" text not null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("template", "id"));`,
    );
    this.addSql(`alter table "instances" add constraint "instances_server_id_unique" unique ("server_id");`);

    this.addSql(
      `create table "revision" ("name" varchar(16) collate "C" not null, "counter" bigint not null, primary key ("name"));`,
    );

    this.addSql(
      `create table "settings" ("name" varchar(128) collate "C" not null, "value" text not null, primary key ("name"));`,
    );

    this.addSql(
      `create table "templates" ("name" varchar(128) collate "C" not null, "load_balancer" text not null, "position" bigint not null, primary key ("name"));`,
    );

    this.addSql(
      `create table "tombstones" ("template" varchar(128) collate "C" not null, "id" varchar(128) collate "C" not null, "fingerprint" varchar(128) collate "C" not null, primary key ("template", "id"));`,
    );

    this.addSql(
      `create table "users" ("id" varchar(64) collate "C" not null, "username" varchar(64) collate "C" not null, "username_key" varchar(64) collate "C" not null, "position" bigint not null, "email" varchar(512) not null, "role" varchar(16) collate "C" not null, "templates" text null, "is_active" int not null, "password_hash" varchar(128) collate "C" not null, "credentials_changed_at" timestamptz(3) not null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"));`,
    );
    this.addSql(`alter table "users" add constraint "users_username_key_unique" unique ("username_key");`);

    // Added by hand: the one row of this table, there before the migration is recorded.
    this.addSql(`insert into "revision" ("name", "counter") values ('registry', 0);`);
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists "api_keys" cascade;`);
    this.addSql(`drop table if exists "audit_log" cascade;`);
    this.addSql(`drop table if exists "instances" cascade;`);
    this.addSql(`drop table if exists "revision" cascade;`);
    this.addSql(`drop table if exists "settings" cascade;`);
    this.addSql(`drop table if exists "templates" cascade;`);
    this.addSql(`drop table if exists "tombstones" cascade;`);
    this.addSql(`drop table if exists "users" cascade;`);
  }
}
