export { type SystemFacts, systemTools } from './tools.ts';
