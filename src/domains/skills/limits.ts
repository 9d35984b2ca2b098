/** Every bound on what a skills folder may make the server do. Past one, something is left out and named. */
export const SKILL_LIMITS = Object.freeze({
  /** One SKILL.md. The format advises 5,000 tokens, about 20 KB. */
  skillFileBytesMax: 1_048_576,
  /** YAML is read at about 2.5 MB/s, so this is 25 ms at worst. */
  frontMatterBytesMax: 65_536,
  yamlDepthMax: 32,
  /** A skill with all its files: the bounds of the skills extension of MCP. */
  filesMax: 512,
  bytesMax: 16_777_216,
  /** How far below a root a SKILL.md is looked for, and through how many folders. */
  depthMax: 5,
  foldersMax: 2_000,
  /** Names in one folder. Past this the folder is left alone: a part of it would be an arbitrary part. */
  entriesMax: 10_000,
  /** All skills of one root together, so that a hostile one cannot keep the server busy. */
  rootEntriesMax: 50_000,
  rootBytesMax: 268_435_456,
  rootYamlBytesMax: 4_194_304,
  /** Bounds of the format; a longer description is cut, because every word of it costs the reader tokens. */
  nameCharsMax: 64,
  descriptionCharsMax: 1_024,
  versionCharsMax: 64,
  capabilitiesMax: 64,
  capabilityCharsMax: 64,
  /** What the YAML reader quotes of a file in a reason. */
  quoteCharsMax: 120,
  /** Refusals in one answer; the rest is counted. */
  skippedShownMax: 500,
});
