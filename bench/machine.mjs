import { statfsSync } from 'node:fs';
import { cpus, loadavg, platform, release, tmpdir, totalmem } from 'node:os';

const FILE_SYSTEMS = {
  61267: 'ext4',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  16914836: 'tmpfs',
  2035054128: 'overlay',
};

/** What the figures came from. The file system is that of the databases: on a tmpfs an fsync costs nothing. */
export const machine = {
  node: process.version,
  cpu: cpus()[0]?.model.trim(),
  cores: cpus().length,
  memory_gb: Math.round(totalmem() / 1e9),
  system: `${platform()} ${release().split('-')[0]}`,
  file_system: FILE_SYSTEMS[statfsSync(tmpdir()).type] ?? 'unknown',
};

/** How busy the machine was with other things. */
export const loadNow = () => Math.round(loadavg()[0] * 10) / 10;
