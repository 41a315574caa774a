import { Given } from "@cucumber/cucumber";

Given("walls that are doubled", function () {
  this.walls = 2;
});

Given("a roof", function () {
  this.roof = true;
});

Given("⟦rooms⟧a house with {int} rooms", function (rooms: number) {
  this.rooms = rooms;
});
