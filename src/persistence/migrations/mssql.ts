// Written by mikro-orm.config.ts: the migrations of one database, in their order.

import type { Migrations } from '../database.ts';

export const migrations: Migrations = {
  Migration20261123074919_first: [
    'create table [api_keys] ([id] nvarchar(64) collate Latin1_General_BIN2 not null, [name] nvarchar(512) not null, [position] bigint not null, [permissions] varchar(max) not null, [templates] varchar(max) null, [expires_at] datetime2(3) null, [owner_id] nvarchar(64) collate Latin1_General_BIN2 null, [secret_hash] nvarchar(128) collate Latin1_General_BIN2 not null, [created_at] datetime2(3) not null, [last_used_at] datetime2(3) null, constraint [api_keys_pkey] primary key ([id]));',
    'create index [api_keys_owner_id_index] on [api_keys] ([owner_id]);',
    'create table [audit_log] ([id] nvarchar(64) collate Latin1_General_BIN2 not null, [at] datetime2(3) not null, [actor] nvarchar(512) not null, [actor_name] nvarchar(512) null, [action] nvarchar(512) not null, [subject] nvarchar(512) null, [status] int not null, [address] nvarchar(512) null, [request_id] nvarchar(512) null, [suppressed] int null, constraint [audit_log_pkey] primary key ([id]));',
    'create table [audit_call_blocks] ([id] nvarchar(64) collate Latin1_General_BIN2 not null, [calls] int not null, [entries] varchar(max) not null, constraint [audit_call_blocks_pkey] primary key ([id]));',
    'create table [instances] ([template] nvarchar(128) collate Latin1_General_BIN2 not null, [id] nvarchar(128) collate Latin1_General_BIN2 not null, [server_id] nvarchar(260) collate Latin1_General_BIN2 not null, [position] bigint not null, [transport] nvarchar(16) collate Latin1_General_BIN2 not null, [weight] int not null, [source] nvarchar(16) collate Latin1_General_BIN2 not null, [node_id] nvarchar(255) collate Latin1_General_BIN2 null, [fingerprint] nvarchar(128) collate Latin1_General_BIN2 null, [target] varchar(max) not null, [env] varchar(max) null, [headers] varchar(max) null, [metadata] varchar(max) not null, [created_at] datetime2(3) not null, [updated_at] datetime2(3) not null, constraint [instances_pkey] primary key ([template], [id]));',
    'create unique index [instances_server_id_unique] on [instances] ([server_id]);',
    'create table [revision] ([name] nvarchar(16) collate Latin1_General_BIN2 not null, [counter] bigint not null, constraint [revision_pkey] primary key ([name]));',
    'create table [settings] ([name] nvarchar(128) collate Latin1_General_BIN2 not null, [value] varchar(max) not null, constraint [settings_pkey] primary key ([name]));',
    'create table [templates] ([name] nvarchar(128) collate Latin1_General_BIN2 not null, [load_balancer] varchar(max) not null, [position] bigint not null, constraint [templates_pkey] primary key ([name]));',
    'create table [tombstones] ([template] nvarchar(128) collate Latin1_General_BIN2 not null, [id] nvarchar(128) collate Latin1_General_BIN2 not null, [fingerprint] nvarchar(128) collate Latin1_General_BIN2 not null, constraint [tombstones_pkey] primary key ([template], [id]));',
    'create table [users] ([id] nvarchar(64) collate Latin1_General_BIN2 not null, [username] nvarchar(64) collate Latin1_General_BIN2 not null, [username_key] nvarchar(64) collate Latin1_General_BIN2 not null, [position] bigint not null, [email] nvarchar(512) not null, [role] nvarchar(16) collate Latin1_General_BIN2 not null, [templates] varchar(max) null, [is_active] int not null, [password_hash] nvarchar(128) collate Latin1_General_BIN2 not null, [credentials_changed_at] datetime2(3) not null, [created_at] datetime2(3) not null, [updated_at] datetime2(3) not null, constraint [users_pkey] primary key ([id]));',
    'create unique index [users_username_key_unique] on [users] ([username_key]);',
    "insert into [revision] ([name], [counter]) values ('registry', 0);",
  ],
  Migration20261126043954_sessions: [
    'create table [sessions] ([key] nvarchar(64) collate Latin1_General_BIN2 not null, [node] nvarchar(255) collate Latin1_General_BIN2 not null, [life] nvarchar(16) collate Latin1_General_BIN2 not null, [generation] int not null, [value] varchar(max) not null, [used_at] datetime2(3) not null, constraint [sessions_pkey] primary key ([key]));',
    'create index [sessions_node_index] on [sessions] ([node]);',
  ],
  Migration20261126051055_nodes: [
    'create table [nodes] ([life] nvarchar(16) collate Latin1_General_BIN2 not null, [node] nvarchar(255) collate Latin1_General_BIN2 not null, [counter] bigint not null, [profile] varchar(max) not null, [state] varchar(max) not null, [end_cause] nvarchar(16) collate Latin1_General_BIN2 null, [end_frees] nvarchar(16) collate Latin1_General_BIN2 null, constraint [nodes_pkey] primary key ([life]));',
  ],
  Migration20261126081451_programs: [
    'create table [programs] ([program] nvarchar(260) collate Latin1_General_BIN2 not null, [life] nvarchar(16) collate Latin1_General_BIN2 null, [generation] int not null, [marks] varchar(max) not null, constraint [programs_pkey] primary key ([program]));',
  ],
  Migration20261126153529_oauth: [
    'create table [oauth] ([key] nvarchar(64) collate Latin1_General_BIN2 not null, [kind] nvarchar(16) collate Latin1_General_BIN2 not null, [grant_id] nvarchar(64) collate Latin1_General_BIN2 null, [user_id] nvarchar(64) collate Latin1_General_BIN2 null, [client_key] nvarchar(64) collate Latin1_General_BIN2 null, [created_at] datetime2(3) not null, [used_at] datetime2(3) null, [consumed_at] datetime2(3) null, [expires_at] datetime2(3) null, [version] int not null, [value] varchar(max) not null, constraint [oauth_pkey] primary key ([key]));',
    'create index [oauth_grant_id_index] on [oauth] ([grant_id]);',
    'create index [oauth_user_id_index] on [oauth] ([user_id]);',
    'create index [oauth_client_key_index] on [oauth] ([client_key]);',
    'create index [oauth_expires_at_index] on [oauth] ([expires_at]);',
  ],
  Migration20261126195812_auth_of_instances: ['alter table [instances] add [auth] varchar(max) null;'],
  Migration20261126232206_lists: [
    'create table [lists] ([key] nvarchar(64) collate Latin1_General_BIN2 not null, [template] nvarchar(128) collate Latin1_General_BIN2 not null, [read_at] datetime2(3) not null, [value] varchar(max) not null, constraint [lists_pkey] primary key ([key]));',
    'create index [lists_template_index] on [lists] ([template]);',
    'create index [lists_read_at_index] on [lists] ([read_at]);',
  ],
  Migration20261126233727_scopes_of_users: ['alter table [users] add [scopes] varchar(max) null;'],
  Migration20261126234142_definitions: [
    'create table [definitions] ([id] nvarchar(128) collate Latin1_General_BIN2 not null, [value] varchar(max) not null, [position] bigint not null, constraint [definitions_pkey] primary key ([id]));',
  ],
  Migration20261126234733_template_auth: ['alter table [templates] add [auth] varchar(max) null;'],
  Migration20261126235243_approvals: [
    'create table [approvals] ([key] nvarchar(64) collate Latin1_General_BIN2 not null, [scope] nvarchar(128) collate Latin1_General_BIN2 not null, [tool] varchar(max) not null, [digests] varchar(max) not null, [definition] varchar(max) not null, constraint [approvals_pkey] primary key ([key]));',
    'create index [approvals_scope_index] on [approvals] ([scope]);',
  ],
  Migration20261127001716_rights: [
    'alter table [api_keys] add [views] varchar(max) null;',
    'alter table [api_keys] add [tools] varchar(max) null;',
    'alter table [users] add [defined_role] nvarchar(32) collate Latin1_General_BIN2 null;',
    'alter table [users] add [views] varchar(max) null;',
    'alter table [users] add [tools] varchar(max) null;',
  ],
  Migration20261127003036_views: [
    'create table [views] ([id] nvarchar(128) collate Latin1_General_BIN2 not null, [position] bigint not null, [definition] varchar(max) not null, [names] varchar(max) not null, [source] nvarchar(16) collate Latin1_General_BIN2 not null, [fingerprint] nvarchar(128) collate Latin1_General_BIN2 null, [updated_at] datetime2(3) not null, constraint [views_pkey] primary key ([id]));',
  ],
};
