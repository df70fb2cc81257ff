// Written by mikro-orm.config.ts: the migrations of one database, in their order.

import type { Migrations } from '../database.ts';

export const migrations: Migrations = {
  Migration20261123074917_first: [
    'create table `api_keys` (`id` varchar(64) not null, `name` varchar(512) not null, `position` bigint not null, `permissions` longtext not null, `templates` longtext null, `expires_at` datetime(3) null, `owner_id` varchar(64) null, `secret_hash` varchar(128) not null, `created_at` datetime(3) not null, `last_used_at` datetime(3) null, primary key (`id`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'alter table `api_keys` add index `api_keys_owner_id_index` (`owner_id`);',
    'create table `audit_log` (`id` varchar(64) not null, `at` datetime(3) not null, `actor` varchar(512) not null, `actor_name` varchar(512) null, `action` varchar(512) not null, `subject` varchar(512) null, `status` int not null, `address` varchar(512) null, `request_id` varchar(512) null, `suppressed` int null, primary key (`id`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'create table `audit_call_blocks` (`id` varchar(64) not null, `calls` int not null, `entries` longtext not null, primary key (`id`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'create table `instances` (`template` varchar(128) not null, `id` varchar(128) not null, `server_id` varchar(260) not null, `position` bigint not null, `transport` varchar(16) not null, `weight` int not null, `source` varchar(16) not null, `node_id` varchar(255) null, `fingerprint` varchar(128) null, `target` longtext not null, `env` longtext null, `headers` longtext null, `metadata` longtext not null, `created_at` datetime(3) not null, `updated_at` datetime(3) not null, primary key (`template`, `id`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'alter table `instances` add unique `instances_server_id_unique` (`server_id`);',
    'create table `revision` (`name` varchar(16) not null, `counter` bigint not null, primary key (`name`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'create table `settings` (`name` varchar(128) not null, `value` longtext not null, primary key (`name`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'create table `templates` (`name` varchar(128) not null, `load_balancer` longtext not null, `position` bigint not null, primary key (`name`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'create table `tombstones` (`template` varchar(128) not null, `id` varchar(128) not null, `fingerprint` varchar(128) not null, primary key (`template`, `id`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'create table `users` (`id` varchar(64) not null, `username` varchar(64) not null, `username_key` varchar(64) not null, `position` bigint not null, `email` varchar(512) not null, `role` varchar(16) not null, `templates` longtext null, `is_active` int not null, `password_hash` varchar(128) not null, `credentials_changed_at` datetime(3) not null, `created_at` datetime(3) not null, `updated_at` datetime(3) not null, primary key (`id`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'alter table `users` add unique `users_username_key_unique` (`username_key`);',
    "insert into `revision` (`name`, `counter`) values ('registry', 0);",
  ],
  Migration20261126043954_sessions: [
    'create table `sessions` (`key` varchar(64) not null, `node` varchar(255) not null, `life` varchar(16) not null, `generation` int not null, `value` longtext not null, `used_at` datetime(3) not null, primary key (`key`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'alter table `sessions` add index `sessions_node_index` (`node`);',
  ],
  Migration20261126051054_nodes: [
    'create table `nodes` (`life` varchar(16) not null, `node` varchar(255) not null, `counter` bigint not null, `profile` longtext not null, `state` longtext not null, `end_cause` varchar(16) null, `end_frees` varchar(16) null, primary key (`life`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
  ],
  Migration20261126081450_programs: [
    'create table `programs` (`program` varchar(260) not null, `life` varchar(16) null, `generation` int not null, `marks` longtext not null, primary key (`program`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
  ],
  Migration20261126153527_oauth: [
    'create table `oauth` (`key` varchar(64) not null, `kind` varchar(16) not null, `grant_id` varchar(64) null, `user_id` varchar(64) null, `client_key` varchar(64) null, `created_at` datetime(3) not null, `used_at` datetime(3) null, `consumed_at` datetime(3) null, `expires_at` datetime(3) null, `version` int not null, `value` longtext not null, primary key (`key`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'alter table `oauth` add index `oauth_grant_id_index` (`grant_id`);',
    'alter table `oauth` add index `oauth_user_id_index` (`user_id`);',
    'alter table `oauth` add index `oauth_client_key_index` (`client_key`);',
    'alter table `oauth` add index `oauth_expires_at_index` (`expires_at`);',
  ],
  Migration20261126195802_auth_of_instances: ['alter table `instances` add `auth` longtext null;'],
  Migration20261126232206_lists: [
    'create table `lists` (`key` varchar(64) not null, `template` varchar(128) not null, `read_at` datetime(3) not null, `value` longtext not null, primary key (`key`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'alter table `lists` add index `lists_template_index` (`template`);',
    'alter table `lists` add index `lists_read_at_index` (`read_at`);',
  ],
  Migration20261126233726_scopes_of_users: ['alter table `users` add `scopes` longtext null;'],
  Migration20261126234141_definitions: [
    'create table `definitions` (`id` varchar(128) not null, `value` longtext not null, `position` bigint not null, primary key (`id`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
  ],
  Migration20261126234733_template_auth: ['alter table `templates` add `auth` longtext null;'],
  Migration20261126235243_approvals: [
    'create table `approvals` (`key` varchar(64) not null, `scope` varchar(128) not null, `tool` longtext not null, `digests` longtext not null, `definition` longtext not null, primary key (`key`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
    'alter table `approvals` add index `approvals_scope_index` (`scope`);',
  ],
  Migration20261127001716_rights: [
    'alter table `api_keys` add `views` longtext null;',
    'alter table `api_keys` add `tools` longtext null;',
    'alter table `users` add `defined_role` varchar(32) null;',
    'alter table `users` add `views` longtext null;',
    'alter table `users` add `tools` longtext null;',
  ],
  Migration20261127003035_views: [
    'create table `views` (`id` varchar(128) not null, `position` bigint not null, `definition` longtext not null, `names` longtext not null, `source` varchar(16) not null, `fingerprint` varchar(128) null, `updated_at` datetime(3) not null, primary key (`id`)) default character set utf8mb4 collate utf8mb4_bin engine = InnoDB;',
  ],
};
