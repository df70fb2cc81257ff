import { Migration } from '@mikro-orm/migrations';

export class Migration20261122045953_call_blocks extends Migration {
  override name = 'Migration20261122045953_call_blocks';

  override up(): void | Promise<void> {
    this.addSql(
      `create table \`audit_call_blocks\` (\`id\` text not null primary key, \`calls\` integer not null, \`entries\` text not null);`,
    );

    this.addSql(`drop table \`audit_calls\`;`);
  }

  override down(): void | Promise<void> {
    this.addSql(
      `create table \`audit_calls\` (\`actor\` text not null, \`actor_name\` text null, \`at\` datetime not null, \`details\` text not null, \`id\` text not null primary key, \`outcome\` text not null, \`status\` integer not null, \`template\` text null, \`tool\` text null);`,
    );

    this.addSql(`drop table if exists \`audit_call_blocks\`;`);
  }
}
