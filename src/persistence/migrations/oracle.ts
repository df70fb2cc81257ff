// Written by mikro-orm.config.ts: the migrations of one database, in their order.

import type { Migrations } from '../database.ts';

export const migrations: Migrations = {
  Migration20261123074919_first: [
    'create table "api_keys" ("id" varchar2(64) not null, "name" varchar2(1536) not null, "position" number(10, 0) not null, "permissions" clob not null, "templates" clob null, "expires_at" timestamp(3) with time zone null, "owner_id" varchar2(64) null, "secret_hash" varchar2(128) not null, "created_at" timestamp(3) with time zone not null, "last_used_at" timestamp(3) with time zone null, primary key ("id"));',
    'create index "api_keys_owner_id_index" on "api_keys" ("owner_id");',
    'create table "audit_log" ("id" varchar2(64) not null, "at" timestamp(3) with time zone not null, "actor" varchar2(1536) not null, "actor_name" varchar2(1536) null, "action" varchar2(1536) not null, "subject" varchar2(1536) null, "status" number(10, 0) not null, "address" varchar2(1536) null, "request_id" varchar2(1536) null, "suppressed" number(10, 0) null, primary key ("id"));',
    'create table "audit_call_blocks" ("id" varchar2(64) not null, "calls" number(10, 0) not null, "entries" clob not null, primary key ("id"));',
    'create table "instances" ("template" varchar2(128) not null, "id" varchar2(128) not null, "server_id" varchar2(260) not null, "position" number(10, 0) not null, "transport" varchar2(16) not null, "weight" number(10, 0) not null, "source" varchar2(16) not null, "node_id" varchar2(255) null, "fingerprint" varchar2(128) null, "target" clob not null, "env" clob null, "headers" clob null, "metadata" clob not null, "created_at" timestamp(3) with time zone not null, "updated_at" timestamp(3) with time zone not null, primary key ("template", "id"));',
    'create unique index "instances_server_id_unique" on "instances" ("server_id");',
    'create table "revision" ("name" varchar2(16) not null, "counter" number(10, 0) not null, primary key ("name"));',
    'create table "settings" ("name" varchar2(128) not null, "value" clob not null, primary key ("name"));',
    'create table "templates" ("name" varchar2(128) not null, "load_balancer" clob not null, "position" number(10, 0) not null, primary key ("name"));',
    'create table "tombstones" ("template" varchar2(128) not null, "id" varchar2(128) not null, "fingerprint" varchar2(128) not null, primary key ("template", "id"));',
    'create table "users" ("id" varchar2(64) not null, "username" varchar2(64) not null, "username_key" varchar2(64) not null, "position" number(10, 0) not null, "email" varchar2(1536) not null, "role" varchar2(16) not null, "templates" clob null, "is_active" number(10, 0) not null, "password_hash" varchar2(128) not null, "credentials_changed_at" timestamp(3) with time zone not null, "created_at" timestamp(3) with time zone not null, "updated_at" timestamp(3) with time zone not null, primary key ("id"));',
    'create unique index "users_username_key_unique" on "users" ("username_key");',
    'insert into "revision" ("name", "counter") values (\'registry\', 0);',
  ],
  Migration20261126043955_sessions: [
    'create table "sessions" ("key" varchar2(64) not null, "node" varchar2(255) not null, "life" varchar2(16) not null, "generation" number(10, 0) not null, "value" clob not null, "used_at" timestamp(3) with time zone not null, primary key ("key"));',
    'create index "sessions_node_index" on "sessions" ("node");',
  ],
  Migration20261126051056_nodes: [
    'create table "nodes" ("life" varchar2(16) not null, "node" varchar2(255) not null, "counter" number(10, 0) not null, "profile" clob not null, "state" clob not null, "end_cause" varchar2(16) null, "end_frees" varchar2(16) null, primary key ("life"));',
  ],
  Migration20261126081451_programs: [
    'create table "programs" ("program" varchar2(260) not null, "life" varchar2(16) null, "generation" number(10, 0) not null, "marks" clob not null, primary key ("program"));',
  ],
  Migration20261126153530_oauth: [
    'create table "oauth" ("key" varchar2(64) not null, "kind" varchar2(16) not null, "grant_id" varchar2(64) null, "user_id" varchar2(64) null, "client_key" varchar2(64) null, "created_at" timestamp(3) with time zone not null, "used_at" timestamp(3) with time zone null, "consumed_at" timestamp(3) with time zone null, "expires_at" timestamp(3) with time zone null, "version" number(10, 0) not null, "value" clob not null, primary key ("key"));',
    'create index "oauth_grant_id_index" on "oauth" ("grant_id");',
    'create index "oauth_user_id_index" on "oauth" ("user_id");',
    'create index "oauth_client_key_index" on "oauth" ("client_key");',
    'create index "oauth_expires_at_index" on "oauth" ("expires_at");',
  ],
  Migration20261126195813_auth_of_instances: ['alter table "instances" add "auth" clob null;'],
  Migration20261126232206_lists: [
    'create table "lists" ("key" varchar2(64) not null, "template" varchar2(128) not null, "read_at" timestamp(3) with time zone not null, "value" clob not null, primary key ("key"));',
    'create index "lists_template_index" on "lists" ("template");',
    'create index "lists_read_at_index" on "lists" ("read_at");',
  ],
  Migration20261126233727_scopes_of_users: ['alter table "users" add "scopes" clob null;'],
  Migration20261126234142_definitions: [
    'create table "definitions" ("id" varchar2(128) not null, "value" clob not null, "position" number(10, 0) not null, primary key ("id"));',
  ],
  Migration20261126234733_template_auth: ['alter table "templates" add "auth" clob null;'],
  Migration20261126235243_approvals: [
    'create table "approvals" ("key" varchar2(64) not null, "scope" varchar2(128) not null, "tool" clob not null, "digests" clob not null, "definition" clob not null, primary key ("key"));',
    'create index "approvals_scope_index" on "approvals" ("scope");',
  ],
  Migration20261127001716_rights: [
    'alter table "api_keys" add "views" clob null;',
    'alter table "api_keys" add "tools" clob null;',
    'alter table "users" add "defined_role" varchar2(32) null;',
    'alter table "users" add "views" clob null;',
    'alter table "users" add "tools" clob null;',
  ],
  Migration20261127003036_views: [
    'create table "views" ("id" varchar2(128) not null, "position" number(10, 0) not null, "definition" clob not null, "names" clob not null, "source" varchar2(16) not null, "fingerprint" varchar2(128) null, "updated_at" timestamp(3) with time zone not null, primary key ("id"));',
  ],
};
