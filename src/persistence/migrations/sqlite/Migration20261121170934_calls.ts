import { Migration } from '@mikro-orm/migrations';

export class Migration20261121170934_calls extends Migration {
  override name = 'Migration20261121170934_calls';

  override up(): void | Promise<void> {
    this.addSql(
      `create table \`audit_calls\` (\`id\` text not null primary key, \`at\` datetime not null, \`actor\` text not null, \`actor_name\` text null, \`template\` text null, \`tool\` text null, \`outcome\` text not null, \`status\` integer not null, \`details\` text not null);`,
    );
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists \`audit_calls\`;`);
  }
}
