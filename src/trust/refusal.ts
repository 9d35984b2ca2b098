const ADOPT =
  'If you know why and accept it, "colibri checkpoint --adopt" continues from what is there and records that.';

/** Why a log must not be signed over, with what to do about it. */
export class RefusalError extends Error {}

const refusal = (texts: TemplateStringsArray, ...values: readonly (string | number)[]) =>
  new RefusalError(String.raw({ raw: texts }, ...values));

/** Every reason, as sentences for the owner of the log. What nobody can accept says so without `ADOPT`. */
export const REFUSALS = {
  cutTail: (path: string, found: number, signed: number) =>
    refusal`${path} has ${found} audit rows, but ${signed} were signed: its newest rows were cut off, or an older copy was restored. Restore the newest copy. ${ADOPT}`,
  rewritten: (path: string, signed: number) =>
    refusal`The first ${signed} audit rows of ${path} are not the ones that were signed: history was rewritten. "colibri verify" shows where. ${ADOPT}`,
  foreignRows: (path: string, signed: number) =>
    refusal`${path} has audit rows after row ${signed} that this log's key did not sign: another program wrote them, or Colibri did while it refused to sign. "colibri verify" names them. ${ADOPT}`,
  noHead: (path: string, rows: number) =>
    refusal`${path} has ${rows} audit rows, but its signed head was removed. Restore the newest copy. ${ADOPT}`,
  wrongHead: (path: string) =>
    refusal`The signed head in ${path} is not valid: it was replaced by something that this log's key did not sign. Restore the newest copy. ${ADOPT}`,
  otherHead: (path: string) =>
    refusal`${path} contains a head signed by a key that this user does not know: someone else signed this log. "colibri verify" names the key. ${ADOPT}`,
  lostCheckpoint: (path: string, size: string) =>
    refusal`The kept checkpoint ${size} is no longer in ${path}: it was deleted, or an older copy was restored. Restore the newest copy. ${ADOPT}`,
  neverSigned: (path: string, rows: number) =>
    refusal`${path} has ${rows} audit rows and no name: nobody ever signed it, or its name and its heads were removed. ${ADOPT}`,
  replaced: (before: string, now: string) =>
    refusal`The database at this path was the log ${before} and is now ${now}. Restore the old one, or move the new one to another path. ${ADOPT}`,
  unknownLog: (origin: string) =>
    refusal`This user has no key for the log ${origin}: it was moved from another machine or user, or the key folder was lost. Copy the folder "logs" from the old configuration folder. ${ADOPT}`,
  lostKey: (folder: string) =>
    refusal`The key in ${folder} is missing or was replaced. Restore it from a backup. ${ADOPT}`,
  lostMemory: (folder: string) =>
    refusal`${folder} is missing or damaged, so it is not known what was signed last. Restore it from a backup, or compare the newest checkpoint you kept elsewhere with "colibri verify --against". ${ADOPT}`,
  misnamed: (path: string) =>
    refusal`The log’s name in ${path} is not one that Colibri gives. Restore a good copy; a log without its name cannot be signed.`,
  gap: (path: string, position: number) =>
    refusal`Audit row ${position} of ${path} is missing or damaged, although later rows exist. A log with gaps is never signed. Restore a good copy.`,
};
