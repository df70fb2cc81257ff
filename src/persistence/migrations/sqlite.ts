// Written by mikro-orm.config.ts: the migrations of one database, in their order.

import type { Migrations } from '../database.ts';

export const migrations: Migrations = {
  Migration20261123074917_first: [
    'create table `api_keys` (`id` text not null primary key, `name` text not null, `position` bigint not null, `permissions` text not null, `templates` text null, `expires_at` datetime null, `owner_id` text null, `secret_hash` text not null, `created_at` datetime not null, `last_used_at` datetime null);',
    'create index `api_keys_owner_id_index` on `api_keys` (`owner_id`);',
    'create table `audit_log` (`id` text not null primary key, `at` datetime not null, `actor` text not null, `actor_name` text null, `action` text not null, `subject` text null, `status` integer not null, `address` text null, `request_id` text null, `suppressed` integer null);',
    'create table `audit_call_blocks` (`id` text not null primary key, `calls` integer not null, `entries` text not null);',
    'create table `instances` (`template` text not null, `id` text not null, `server_id` text not null, `position` bigint not null, `transport` text not null, `weight` integer not null, `source` text not null, `node_id` text null, `fingerprint` text null, `target` text not null, `env` text null, `headers` text null, `metadata` text not null, `created_at` datetime not null, `updated_at` datetime not null, primary key (`template`, `id`));',
    'create unique index `instances_server_id_unique` on `instances` (`server_id`);',
    'create table `revision` (`name` text not null primary key, `counter` bigint not null);',
    'create table `settings` (`name` text not null primary key, `value` text not null);',
    'create table `templates` (`name` text not null primary key, `load_balancer` text not null, `position` bigint not null);',
    'create table `tombstones` (`template` text not null, `id` text not null, `fingerprint` text not null, primary key (`template`, `id`));',
    'create table `users` (`id` text not null primary key, `username` text not null, `username_key` text not null, `position` bigint not null, `email` text not null, `role` text not null, `templates` text null, `is_active` integer not null, `password_hash` text not null, `credentials_changed_at` datetime not null, `created_at` datetime not null, `updated_at` datetime not null);',
    'create unique index `users_username_key_unique` on `users` (`username_key`);',
    "insert into `revision` (`name`, `counter`) values ('registry', 0);",
  ],
  Migration20261126043954_sessions: [
    'create table `sessions` (`key` text not null primary key, `node` text not null, `life` text not null, `generation` integer not null, `value` text not null, `used_at` datetime not null);',
    'create index `sessions_node_index` on `sessions` (`node`);',
  ],
  Migration20261126051054_nodes: [
    'create table `nodes` (`life` text not null primary key, `node` text not null, `counter` bigint not null, `profile` text not null, `state` text not null, `end_cause` text null, `end_frees` text null);',
  ],
  Migration20261126081450_programs: [
    'create table `programs` (`program` text not null primary key, `life` text null, `generation` integer not null, `marks` text not null);',
  ],
  Migration20261126153525_oauth: [
    'create table `oauth` (`key` text not null primary key, `kind` text not null, `grant_id` text null, `user_id` text null, `client_key` text null, `created_at` datetime not null, `used_at` datetime null, `consumed_at` datetime null, `expires_at` datetime null, `version` integer not null, `value` text not null);',
    'create index `oauth_grant_id_index` on `oauth` (`grant_id`);',
    'create index `oauth_user_id_index` on `oauth` (`user_id`);',
    'create index `oauth_client_key_index` on `oauth` (`client_key`);',
    'create index `oauth_expires_at_index` on `oauth` (`expires_at`);',
  ],
  Migration20261126195758_auth_of_instances: ['alter table `instances` add column `auth` text null;'],
  Migration20261126232206_lists: [
    'create table `lists` (`key` text not null primary key, `template` text not null, `read_at` datetime not null, `value` text not null);',
    'create index `lists_template_index` on `lists` (`template`);',
    'create index `lists_read_at_index` on `lists` (`read_at`);',
  ],
  Migration20261126233726_scopes_of_users: ['alter table `users` add column `scopes` text null;'],
  Migration20261126234141_definitions: [
    'create table `definitions` (`id` text not null primary key, `value` text not null, `position` bigint not null);',
  ],
  Migration20261126234733_template_auth: ['alter table `templates` add column `auth` text null;'],
  Migration20261126235243_approvals: [
    'create table `approvals` (`key` text not null primary key, `scope` text not null, `tool` text not null, `digests` text not null, `definition` text not null);',
    'create index `approvals_scope_index` on `approvals` (`scope`);',
  ],
  Migration20261127001716_rights: [
    'alter table `api_keys` add column `views` text null;',
    'alter table `api_keys` add column `tools` text null;',
    'alter table `users` add column `defined_role` text null;',
    'alter table `users` add column `views` text null;',
    'alter table `users` add column `tools` text null;',
  ],
  Migration20261127003035_views: [
    'create table `views` (`id` text not null primary key, `position` bigint not null, `definition` text not null, `names` text not null, `source` text not null, `fingerprint` text null, `updated_at` datetime not null);',
  ],
};
