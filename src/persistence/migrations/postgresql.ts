// Written by mikro-orm.config.ts: the migrations of one database, in their order.

import type { Migrations } from '../database.ts';

export const migrations: Migrations = {
  Migration20261123074917_first: [
    'create table "api_keys" ("id" varchar(64) collate "C" not null, "name" varchar(512) not null, "position" bigint not null, "permissions" text not null, "templates" text null, "expires_at" timestamptz(3) null, "owner_id" varchar(64) collate "C" null, "secret_hash" varchar(128) collate "C" not null, "created_at" timestamptz(3) not null, "last_used_at" timestamptz(3) null, primary key ("id"));',
    'create index "api_keys_owner_id_index" on "api_keys" ("owner_id");',
    'create table "audit_log" ("id" varchar(64) collate "C" not null, "at" timestamptz(3) not null, "actor" varchar(512) not null, "actor_name" varchar(512) null, "action" varchar(512) not null, "subject" varchar(512) null, "status" int not null, "address" varchar(512) null, "request_id" varchar(512) null, "suppressed" int null, primary key ("id"));',
    'create table "audit_call_blocks" ("id" varchar(64) collate "C" not null, "calls" int not null, "entries" text not null, primary key ("id"));',
    'create table "instances" ("template" varchar(128) collate "C" not null, "id" varchar(128) collate "C" not null, "server_id" varchar(260) collate "C" not null, "position" bigint not null, "transport" varchar(16) collate "C" not null, "weight" int not null, "source" varchar(16) collate "C" not null, "node_id" varchar(255) collate "C" null, "fingerprint" varchar(128) collate "C" null, "target" text not null, "env" text null, "headers" text null, "metadata" text not null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("template", "id"));',
    'alter table "instances" add constraint "instances_server_id_unique" unique ("server_id");',
    'create table "revision" ("name" varchar(16) collate "C" not null, "counter" bigint not null, primary key ("name"));',
    'create table "settings" ("name" varchar(128) collate "C" not null, "value" text not null, primary key ("name"));',
    'create table "templates" ("name" varchar(128) collate "C" not null, "load_balancer" text not null, "position" bigint not null, primary key ("name"));',
    'create table "tombstones" ("template" varchar(128) collate "C" not null, "id" varchar(128) collate "C" not null, "fingerprint" varchar(128) collate "C" not null, primary key ("template", "id"));',
    'create table "users" ("id" varchar(64) collate "C" not null, "username" varchar(64) collate "C" not null, "username_key" varchar(64) collate "C" not null, "position" bigint not null, "email" varchar(512) not null, "role" varchar(16) collate "C" not null, "templates" text null, "is_active" int not null, "password_hash" varchar(128) collate "C" not null, "credentials_changed_at" timestamptz(3) not null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null, primary key ("id"));',
    'alter table "users" add constraint "users_username_key_unique" unique ("username_key");',
    'insert into "revision" ("name", "counter") values (\'registry\', 0);',
  ],
  Migration20261126043954_sessions: [
    'create table "sessions" ("key" varchar(64) collate "C" not null, "node" varchar(255) collate "C" not null, "life" varchar(16) collate "C" not null, "generation" int not null, "value" text not null, "used_at" timestamptz(3) not null, primary key ("key"));',
    'create index "sessions_node_index" on "sessions" ("node");',
  ],
  Migration20261126051054_nodes: [
    'create table "nodes" ("life" varchar(16) collate "C" not null, "node" varchar(255) collate "C" not null, "counter" bigint not null, "profile" text not null, "state" text not null, "end_cause" varchar(16) collate "C" null, "end_frees" varchar(16) collate "C" null, primary key ("life"));',
  ],
  Migration20261126081450_programs: [
    'create table "programs" ("program" varchar(260) collate "C" not null, "life" varchar(16) collate "C" null, "generation" int not null, "marks" text not null, primary key ("program"));',
  ],
  Migration20261126153526_oauth: [
    'create table "oauth" ("key" varchar(64) collate "C" not null, "kind" varchar(16) collate "C" not null, "grant_id" varchar(64) collate "C" null, "user_id" varchar(64) collate "C" null, "client_key" varchar(64) collate "C" null, "created_at" timestamptz(3) not null, "used_at" timestamptz(3) null, "consumed_at" timestamptz(3) null, "expires_at" timestamptz(3) null, "version" int not null, "value" text not null, primary key ("key"));',
    'create index "oauth_grant_id_index" on "oauth" ("grant_id");',
    'create index "oauth_user_id_index" on "oauth" ("user_id");',
    'create index "oauth_client_key_index" on "oauth" ("client_key");',
    'create index "oauth_expires_at_index" on "oauth" ("expires_at");',
  ],
  Migration20261126195800_auth_of_instances: ['alter table "instances" add "auth" text null;'],
  Migration20261126232206_lists: [
    'create table "lists" ("key" varchar(64) collate "C" not null, "template" varchar(128) collate "C" not null, "read_at" timestamptz(3) not null, "value" text not null, primary key ("key"));',
    'create index "lists_template_index" on "lists" ("template");',
    'create index "lists_read_at_index" on "lists" ("read_at");',
  ],
  Migration20261126233726_scopes_of_users: ['alter table "users" add "scopes" text null;'],
  Migration20261126234141_definitions: [
    'create table "definitions" ("id" varchar(128) collate "C" not null, "value" text not null, "position" bigint not null, primary key ("id"));',
  ],
  Migration20261126234733_template_auth: ['alter table "templates" add "auth" text null;'],
  Migration20261126235243_approvals: [
    'create table "approvals" ("key" varchar(64) collate "C" not null, "scope" varchar(128) collate "C" not null, "tool" text not null, "digests" text not null, "definition" text not null, primary key ("key"));',
    'create index "approvals_scope_index" on "approvals" ("scope");',
  ],
  Migration20261127001716_rights: [
    'alter table "api_keys" add "views" text null;',
    'alter table "api_keys" add "tools" text null;',
    'alter table "users" add "defined_role" varchar(32) collate "C" null;',
    'alter table "users" add "views" text null;',
    'alter table "users" add "tools" text null;',
  ],
  Migration20261127003035_views: [
    'create table "views" ("id" varchar(128) collate "C" not null, "position" bigint not null, "definition" text not null, "names" text not null, "source" varchar(16) collate "C" not null, "fingerprint" varchar(128) collate "C" null, "updated_at" timestamptz(3) not null, primary key ("id"));',
  ],
};
