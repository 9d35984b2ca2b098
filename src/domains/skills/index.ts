export { createSkillRegistry, type SkillRegistry } from './registry.ts';
export { skillTools } from './tools.ts';
