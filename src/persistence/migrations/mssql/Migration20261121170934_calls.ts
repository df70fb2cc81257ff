import { Migration } from '@mikro-orm/migrations';

export class Migration20261121170934_calls extends Migration {
  override name = 'Migration20261121170934_calls';

  override up(): void | Promise<void> {
    this.addSql(
      `create table [audit_calls] ([id] nvarchar(64) collate Latin1_General_BIN2 not null, [at] datetime2(3) not null, [actor] nvarchar(512) not null, [actor_name] nvarchar(512) null, [template] nvarchar(512) null, [tool] nvarchar(512) null, [outcome] nvarchar(16) collate Latin1_General_BIN2 not null, [status] int not null, [details] varchar(max) not null, constraint [audit_calls_pkey] primary key ([id]));`,
    );
  }

  override down(): void | Promise<void> {
    this.addSql(`if object_id('[audit_calls]', 'U') is not null drop table [audit_calls];`);
  }
}
