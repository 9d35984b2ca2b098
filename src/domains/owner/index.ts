export { ownerTools } from './tools.ts';
