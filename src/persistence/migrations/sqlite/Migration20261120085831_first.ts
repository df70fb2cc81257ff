import { Migration } from '@mikro-orm/migrations';

export class Migration20261120085831_first extends Migration {
  override name = 'Migration20261120085831_first';

  override up(): void | Promise<void> {
    this.addSql(
      `create table \`api_keys\` (\`id\` text not null primary key, \`name\` text not null, \`position\` bigint not null, \`permissions\` text not null, \`templates\` text null, \`expires_at\` datetime null, \`owner_id\` text null, \`secret_hash\` text not null, \`created_at\` datetime not null, \`last_used_at\` datetime null);`,
    );
    this.addSql(`create index \`api_keys_owner_id_index\` on \`api_keys\` (\`owner_id\`);`);

    this.addSql(
      `create table \`audit_log\` (\`id\` text not null primary key, \`at\` datetime not null, \`actor\` text not null, \`actor_name\` text null, \`action\` text not null, \`subject\` text null, \`status\` integer not null, \`address\` text null, \`request_id\` text null);`,
    );

    this.addSql(
      `create table \`instances\` (\`template\` text not null, \`id\` text not null, \`server_id\` text not null, \`position\` bigint not null, \`transport\` text not null, \`weight\` integer not null, \`source\` text not null, \`node_id\` text null, \`fingerprint\` text null, \`target\` text not null, \`env\` text null, \`headers\` text null, \`metadata\` text not null, \`created_at\` datetime not null, \`updated_at\` datetime not null, primary key (\`template\`, \`id\`));`,
    );
    this.addSql(`create unique index \`instances_server_id_unique\` on \`instances\` (\`server_id\`);`);

    this.addSql(
      `create table \`revision\` (\`name\` text not null primary key, \`counter\` bigint not null);`,
    );

    this.addSql(`create table \`settings\` (\`name\` text not null primary key, \`value\` text not null);`);

    this.addSql(
      `create table \`templates\` (\`name\` text not null primary key, \`load_balancer\` text not null, \`position\` bigint not null);`,
    );

    this.addSql(
      `create table \`tombstones\` (\`template\` text not null, \`id\` text not null, \`fingerprint\` text not null, primary key (\`template\`, \`id\`));`,
    );

    this.addSql(
      `create table \`users\` (\`id\` text not null primary key, \`username\` text not null, \`username_key\` text not null, \`position\` bigint not null, \`email\` text not null, \`role\` text not null, \`templates\` text null, \`is_active\` integer not null, \`password_hash\` text not null, \`credentials_changed_at\` datetime not null, \`created_at\` datetime not null, \`updated_at\` datetime not null);`,
    );
    this.addSql(`create unique index \`users_username_key_unique\` on \`users\` (\`username_key\`);`);

    // Added by hand: the one row of this table, there before the migration is recorded.
    this.addSql(`insert into \`revision\` (\`name\`, \`counter\`) values ('registry', 0);`);
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists \`api_keys\`;`);
    this.addSql(`drop table if exists \`audit_log\`;`);
    this.addSql(`drop table if exists \`instances\`;`);
    this.addSql(`drop table if exists \`revision\`;`);
    this.addSql(`drop table if exists \`settings\`;`);
    this.addSql(`drop table if exists \`templates\`;`);
    this.addSql(`drop table if exists \`tombstones\`;`);
    this.addSql(`drop table if exists \`users\`;`);
  }
}
